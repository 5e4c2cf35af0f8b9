"""An operator of kopf as its users write them: create, and patch what is there already."""

import kopf
import kubernetes

kubernetes.config.load_kube_config()
core = kubernetes.client.CoreV1Api()


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_):
    settings.posting.enabled = False


@kopf.on.create("greeter.example.com", "v1", "greetings")
@kopf.on.update("greeter.example.com", "v1", "greetings", field="spec")
def greet(name, namespace, spec, **_):
    body = {"metadata": {"name": name}, "data": {"text": f"Hello {spec['name']}"}}
    kopf.adopt(body)
    try:
        core.create_namespaced_config_map(namespace, body)
    except kubernetes.client.ApiException as error:
        if error.status != 409:
            raise
        core.patch_namespaced_config_map(name, namespace, body)
