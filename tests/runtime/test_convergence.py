"""Any interleaving of edits, lag, loss and crashes ends well."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hedgerow.kube import errors
from hedgerow_testing.memory.answers import Refused
from hedgerow_testing.virtual import run
from runtime.bluegreens import COLOURS
from runtime.people import SPECS, People, unreported
from runtime.world import NS, Crash, World, calm

colours = st.sampled_from(sorted(COLOURS))
kinds = st.sampled_from(["", "BlueGreen", "Deployment", "Service"])


def step(name: str, *args: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(st.just(name), *args)


USER = st.one_of(
    step("apply", st.integers(0, len(SPECS) - 1)),
    step("apply", st.integers(0, len(SPECS) - 1)),
    step("touch", st.sampled_from(["1", "2"])),
)
FOREIGN = st.one_of(
    step("force_image", colours, st.sampled_from(["theirs:1", "mine:2"])),
    step("release_image", colours),
    step("set_image", colours, st.sampled_from(["theirs:1", "theirs:2", "mine:2"])),
    step("set_node_selector", colours, st.sampled_from(["ssd", "hdd", None])),
    step("set_selector", st.sampled_from(["Grey", "Green"])),
    step("set_target_port", st.sampled_from([8080, 9090])),
    step("set_label", colours, st.sampled_from(["mine", None])),
    step("scale", colours, st.integers(0, 3)),
    step("delete_child", st.sampled_from(["Service", "Deployment"]), colours),
    step("meddle_with_status", st.sampled_from(["Grey", "Blue"])),
    step("replace_status"),
    step("wipe_managed_fields", colours),
    step("roll_out", colours, st.integers(0, 1)),
)
DRASTIC = st.one_of(step("delete"), step("collect"), step("orphan", colours))
EDIT = st.one_of(USER, FOREIGN, FOREIGN, DRASTIC)
SYSTEM = st.one_of(
    step("deliver", st.integers(1, 4), kinds),
    step("lose", kinds),
    step("work"),
    step("work"),
    step("restart"),
    step("wait", st.sampled_from([1, 31, 301, 700])),
    step("jump", st.sampled_from([-7200, 0, 90, 7200])),
)
REFUSALS = (
    errors.Invalid("no", code=422),
    errors.Forbidden("may not", code=403),
    errors.Unavailable("webhook", code=500),
    errors.Throttled("later", code=429, after=30.0),
    errors.Stale("changed", code=409),
    errors.Unreachable("lost", sent=True),
)
STORY = st.lists(
    st.one_of(
        EDIT,
        SYSTEM,
        st.tuples(st.just("crash"), st.integers(0, 4), st.sampled_from(["before", "after"])),
        st.tuples(st.just("meanwhile"), st.integers(0, 4), EDIT, st.booleans()),
        st.tuples(
            st.just("refuse"),
            st.integers(0, 4),
            st.sampled_from(REFUSALS),
            st.sampled_from(["before", "after"]),
        ),
    ),
    max_size=25,
)


class Story:
    """One example: people and the operator, step by step."""

    def __init__(self) -> None:
        self.world = World()
        self.people = People(self.world)
        self.edits: list[bool] = []
        """Whether each edit was one: of what is not there, or refused by the server, it is none."""

    async def begin(self, spec: int | None) -> None:
        """Begin with a settled world, or with one where nothing was done yet."""
        self.people.apply(spec or 0)
        if spec is not None:
            await self.world.settle()

    async def tell(self, name: str, *args: Any) -> None:
        world = self.world
        match name, args:
            case "deliver", (most, kind):
                world.deliver(most, kind)
            case "lose", (kind,):
                world.lose_and_relist(kind)
            case "work", ():
                await self.work()
            case "restart", ():
                world.restart()
            case "wait", (seconds,):
                world.server.now += seconds
            case "jump", (ahead,):
                world.clock.ahead = ahead
                world.life.look()  # as the operator does when it sees that
            case "refuse", (number, error, when):
                world.during(number, lambda: self.refuse(error), when=when)
                await self.work()
            case "crash", (number, when):
                world.during(number, self.crash, when=when)
                await self.work()
            case "meanwhile", (number, edit, told):
                world.during(number, lambda: self.meanwhile(edit, told=told))
                await self.work()
            case _:
                self.edit(name, *args)

    async def work(self) -> None:
        try:
            await self.world.work()
        except Crash:
            self.world.restart()

    def crash(self) -> None:
        raise Crash

    def refuse(self, error: Exception) -> None:
        raise error

    def meanwhile(self, edit: tuple[Any, ...], *, told: bool) -> None:
        self.edit(*edit)
        if told:
            self.world.deliver()

    def edit(self, name: str, *args: Any) -> None:
        self.edits.append(False)
        with suppress(Refused, AssertionError):
            self.people.act(name, *args)
            self.edits[-1] = True

    async def end(self) -> None:
        """Let time pass until nothing happens any more."""
        world = self.world
        world.cluster.before = world.cluster.after = calm
        for _ in range(3):
            world.server.collect()
            await world.settle(rounds=12)


class Anxious(Story):
    """Whose operator looks again after each pass, at all there is."""

    async def work(self) -> None:
        await super().work()
        self.world.life.look()
        await super().work()


def kept(world: World) -> Any:
    """Return what objects declare and say, without versions, uids and times.

    A child that somebody made an orphan is not among them: whether there was one to be made that,
    depends on when the operator came to it.
    """
    found: dict[Any, Any] = {}
    for kind, group in (
        ("BlueGreen", "app.demo.kakao.com"),
        ("Deployment", "apps"),
        ("Service", ""),
    ):
        for obj in world.server.list(group, kind, NS).items:
            meta, status = obj["metadata"], obj.get("status", {})
            if kind != "BlueGreen" and not meta.get("ownerReferences"):
                continue
            found[kind, meta["name"]] = (
                obj["spec"],
                meta.get("labels"),
                [
                    (one["type"], one["status"], one.get("reason"))
                    for one in status.get("conditions", ())
                ],
                [
                    (one["object"], one["path"], one.get("manager"))
                    for one in status.get("contested", ())
                ],
                status.get("routeTo"),
            )
    return found


class TestAnyStory:
    @given(st.one_of(st.none(), st.integers(0, len(SPECS) - 1)), STORY)
    def test_it_ends_settled_with_nothing_overwritten_or_untold_as_if_always_looked_at(
        self, first, story
    ):
        async def told() -> None:
            calm_one, anxious = Story(), Anxious()
            for it in (calm_one, anxious):
                await it.begin(first)
                for name, *args in story:
                    await it.tell(name, *args)
                await it.end()

            # One that comes to a child later, such as after a crash, leaves nothing to be edited.
            if calm_one.edits == anxious.edits:
                assert kept(calm_one.world) == kept(anxious.world)
            for it in (calm_one, anxious):
                assert it.world.failures == []
                assert not any(sent.force for sent in it.world.cluster.writes)
                assert it.people.overwritten() == []
                assert unreported(it.world) == []
            await self.rests(calm_one.world)

        run(told)

    async def rests(self, world: World) -> None:
        """Nothing is written any more: not in time, not after a restart; no orphan is left."""
        version, before = world.server.version, len(world.writes)
        for _ in range(2):
            world.server.now += 3601
            world.restart()
            await world.settle()

        assert world.writes[before:] == []
        assert world.server.version == version
        assert world.server.collect() == 0
