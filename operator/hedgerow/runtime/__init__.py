"""Runtime: the imperative shell that carries out the declarations of controllers."""
