"""How our types become components of the schema."""

from inspect import cleandoc
from typing import Any, Literal, Union, get_args, get_type_hints

import msgspec
from litestar.openapi.spec import Discriminator, Schema
from litestar.plugins import OpenAPISchemaPlugin
from litestar.plugins.core._msgspec import kwarg_definition_from_field
from litestar.typing import FieldDefinition
from msgspec import UNSET, Struct, UnsetType

from api.openapi.chunks import SENT, Chunk, example_chunks, tag_of


class StructSchema(OpenAPISchemaPlugin):
    """A component for a Struct, with its docstring and what an answer always has.

    Litestar's own (2.25) leaves out the docstring, takes a field with a default for one that may
    be missing, which is so in a request only, and fails on a default that cannot be hashed.
    """

    def is_plugin_supported_field(self, field_definition: FieldDefinition) -> bool:
        """Every Struct."""
        return not field_definition.is_union and field_definition.is_subclass_of(Struct)

    def to_openapi_schema(self, field_definition: FieldDefinition, schema_creator: Any) -> Schema:
        """The schema of one Struct."""
        struct: type[Struct] = field_definition.type_
        properties = _list_properties(struct)
        schema: Schema = schema_creator.create_component_schema(
            field_definition,
            required=[name for name in properties if name not in _list_unset(struct)],
            property_fields=properties,
        )
        schema.description = cleandoc(struct.__doc__ or "")
        return schema


class ChunkSchema(OpenAPISchemaPlugin):
    """A component for a chunk of any type, with an example of each."""

    def is_plugin_supported_field(self, field_definition: FieldDefinition) -> bool:
        """Only Chunk."""
        return field_definition.annotation is Chunk

    def to_openapi_schema(self, field_definition: FieldDefinition, schema_creator: Any) -> Schema:
        """One of all types, told apart by `type`."""
        schema: Schema = schema_creator.create_component_schema(
            field_definition, required=[], property_fields={}, examples=example_chunks()
        )
        kinds = [FieldDefinition.from_annotation(kind) for kind in SENT]
        schema.description = cleandoc(Chunk.__doc__ or "")
        schema.one_of = [schema_creator.for_field_definition(kind) for kind in kinds]
        schema.discriminator = Discriminator(
            "type", {tag_of(kind): f"#/components/schemas/{kind.__name__}" for kind in SENT}
        )
        return schema


SCHEMA_PLUGINS = [ChunkSchema(), StructSchema()]


def _list_properties(struct: type[Struct]) -> dict[str, FieldDefinition]:
    info = msgspec.inspect.type_info(struct)
    assert isinstance(info, msgspec.inspect.StructType)
    hints = get_type_hints(struct, include_extras=True)
    properties = {
        field.encode_name: FieldDefinition.from_annotation(
            _without_unset(hints[field.name]),
            name=field.encode_name,
            kwarg_definition=kwarg_definition_from_field(field)[0],
        )
        for field in info.fields
    }
    if info.tag_field:
        tag = FieldDefinition.from_annotation(Literal[info.tag])
        properties = {info.tag_field: tag, **properties}
    return properties


def _without_unset(hint: Any) -> Any:
    """The type of a field when it is there."""
    kinds = get_args(hint)
    if UnsetType not in kinds:
        return hint
    return Union[tuple(kind for kind in kinds if kind is not UnsetType)]  # noqa: UP007


def _list_unset(struct: type[Struct]) -> set[str]:
    """The names of what an answer may lack."""
    fields = msgspec.structs.fields(struct)
    return {field.encode_name for field in fields if field.default is UNSET}
