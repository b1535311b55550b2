"""What responses are made of: dictionaries whose members are attributes as well, and whose values no log shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._names import NAMES

_SECRETS = frozenset({"data", "key", "secret", "session_key", "nonce", "configuration", "text"})
_HIDDEN = "[hidden]"


def _is_secret(name: str, holder: Mapping[str, Any]) -> bool:
    """The code of a sign-in link lets in whoever has it; the code of a reactor is no secret."""
    return name in _SECRETS or (name == "code" and "person_id" in holder)


class Unset:
    """The type of `UNSET`."""

    def __repr__(self) -> str:
        return "UNSET"

    def __bool__(self) -> bool:
        return False


UNSET = Unset()
"""An argument that is not given. `None` is sent as null, which removes an attribute in an update."""


class Object(dict[str, Any]):
    """A JSON object. `token["id"]` and `token.id` are the same; what the vault left out is `None`.

    Its representation hides values and secrets: `print(token)` and a log line do not show `data`. Attributes that have
    the name of a method of a dictionary, such as `keys`, are read as `application["keys"]`.
    """

    etag: str | None = None
    """Of a response about one thing: the tag of its state, for the argument `if_match` of a change."""

    def __init__(self, *members: Any, **more: Any) -> None:
        super().__init__(*members, **more)
        if members and isinstance(members[0], Object):
            self.etag = members[0].etag

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        if name in NAMES:
            return None
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def __repr__(self) -> str:
        is_page = "pagination" in self
        shown = {
            name: _HIDDEN if _is_secret(name, self) and not is_page else value
            for name, value in self.items()
        }
        return repr(shown)

    __str__ = __repr__


class HiddenObject(Object):
    """An object of the caller's form: nothing of it is shown, because no name says what holds a value."""

    def __repr__(self) -> str:
        return repr({name: _HIDDEN for name in self})

    __str__ = __repr__


class HiddenList(list[Any]):
    """A list of the caller's form, of which nothing is shown."""

    def __repr__(self) -> str:
        return repr([_HIDDEN for _ in self])

    __str__ = __repr__
