"""The base class of requests, which refuses unknown members and suggests the most similar known member, and the problem
of an invalid request."""

from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from memory.core.errors import ValueRefused
from memory.core.nearest import nearest_hint
from memory.core.problem_codes import ProblemCode

# At most this number of unknown members of one object is reported.
_MAX_UNKNOWN = 20
# At most this number of errors is reported in one sentence.
_MAX_ERRORS = 5
# Parts of pydantic's paths that are not members of the request.
_PLACES = frozenset({"body", "query", "path", "payload"})
_OBJECT = "This must be an object"
# Replaces messages of pydantic that mention Python or its classes.
_SENTENCES = {
    "missing": "This member is required",
    **dict.fromkeys(("model_type", "model_attributes_type", "dict_type"), _OBJECT),
}
# The codes of types of errors; a code is used if all errors have it.
_CODES = {"missing": ProblemCode.MISSING_MEMBER, "extra_forbidden": ProblemCode.UNKNOWN_MEMBER}


class RequestModel(BaseModel):
    """An object of a request. Unknown members are refused; otherwise a mistyped member would be ignored silently."""

    model_config = ConfigDict(extra="forbid")
    # Members that callers may expect, each with the end of a sentence that says what to use instead.
    elsewhere: ClassVar[dict[str, str]] = {}

    @model_validator(mode="before")
    @classmethod
    def _members_exist(cls, data: Any) -> Any:
        if isinstance(data, dict) and not data.keys() <= cls.model_fields.keys():
            unknown = [name for name in data if name not in cls.model_fields][:_MAX_UNKNOWN]
            raise ValidationError.from_exception_data(cls.__name__, [cls._unknown(name) for name in unknown])
        return data

    @classmethod
    def _unknown(cls, name: Any) -> InitErrorDetails:
        hint = cls.elsewhere.get(name) or nearest_hint(str(name), cls.model_fields, noun="members")
        sentence = f"This member does not exist; {hint}"
        error = PydanticCustomError("extra_forbidden", "{sentence}", {"sentence": sentence})
        return InitErrorDetails(type=error, loc=(str(name),), input=None)


def validation_problem(errors: Sequence[Any]) -> ValueRefused:
    """Return pydantic's errors as one problem. Its sentences name the members of the first five errors, and its
    ``member`` is that of the first one."""
    members = [".".join(str(part) for part in error["loc"] if part not in _PLACES) for error in errors]
    sentences = []
    for error, member in list(zip(errors, members, strict=True))[:_MAX_ERRORS]:
        message = _SENTENCES.get(error["type"]) or str(error["msg"]).removeprefix("Value error, ").rstrip(".")
        sentences.append(f"{member}: {message}." if member else f"{message}.")
    if len(errors) > _MAX_ERRORS:
        sentences.append(f"And {len(errors) - _MAX_ERRORS} more.")
    codes = {_CODES.get(error["type"], ProblemCode.INVALID_MEMBER) for error in errors}
    code = codes.pop() if len(codes) == 1 else ProblemCode.INVALID_MEMBER
    return ValueRefused(" ".join(sentences), code=code, member=members[0])
