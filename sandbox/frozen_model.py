"""The base of all models that callers and answers are made of."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """Base of our models: immutable, unknown fields are an error that names them."""

    # An error that showed its input would show secrets.
    model_config = ConfigDict(
        frozen=True, extra="forbid", ser_json_bytes="base64", val_json_bytes="base64", hide_input_in_errors=True
    )
