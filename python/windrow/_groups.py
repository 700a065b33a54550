"""Arguments that belong together. Each class is a dict; a plain dict is as good.

The members of a group are those of the library's table of settings, as the arguments of calls are: ``help`` and
``inspect.signature`` read it when they are asked.
"""

from windrow import _arguments


class _Group(dict):
    """Arguments by name, those alone that are given."""

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.items())})"


class _Documentation:
    def __init__(self, group):
        self._group = group

    def __get__(self, instance, owner=None):
        return _arguments.group_documentation(self._group)


class _Constructor:
    """Takes the members of a group by name."""

    __name__ = "__init__"

    def __init__(self, group):
        self._group = group

    def __get__(self, instance, owner=None):
        # What has this method is a function to `help`.
        return self if instance is None else lambda *given, **members: self(instance, *given, **members)

    def __call__(self, instance, *given, **members):
        try:
            known = self.__signature__.bind(instance, *given, **members).signature.parameters
        except TypeError as error:
            raise TypeError(f"{type(instance).__name__}.__init__() {error}") from None
        instance.update((name, members[name]) for name in known if members.get(name) is not None)

    @property
    def __signature__(self):
        return _arguments.group_signature(self._group)


def _class(group):
    members = {"__doc__": _Documentation(group), "__init__": _Constructor(group), "__module__": __name__}
    return type(_arguments.GROUPS[group][0], (_Group,), members)


Read = _class("read")
Csv = _class("csv")
ChangeLog = _class("changes")
Write = _class("write")
Parquet = _class("parquet")
Spill = _class("spill")
