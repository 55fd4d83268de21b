"""The base class of requests. It refuses unknown members and suggests the most similar known member."""

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from memory.core.nearest import nearest_hint

# At most this number of unknown members of one object is reported.
_MAX_UNKNOWN = 20


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
