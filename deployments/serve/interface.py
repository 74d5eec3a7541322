"""What is asked and answered as JSON."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from tasks.words import WEIGHT

MOST_MATCHES = 100
MOST_MARKS = 50
MOST_LETTERS = 200


def _whole(value: Any) -> Any:
    """To JSON, 3.0 is an integer."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(_whole)]
# A bound after a validator is not put into the schema under its name.
Row = Annotated[Whole, Field(ge=0, json_schema_extra={"minimum": 0})]


class Query(BaseModel):
    """What to search by: one of `picture`, `example` and `image`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model: str | None = Field(None, description="a name of /api/models; the first by default")
    picture: str | None = Field(
        None,
        description="a sketch in base64, or its data address: PNG, JPEG, WebP, GIF or BMP",
    )
    photo: bool = Field(
        False,
        description="whether the picture is a photograph of a sketch on paper: light, shadow and "
        "ruled lines are taken out, and it is refused if nothing is left",
    )
    example: Row | None = Field(None, description="row of an example sketch of the model")
    image: Row | None = Field(None, description="row of a picture, for more like it")
    liked: list[Row] = Field(
        [], max_length=MOST_MARKS, description="rows of pictures, for more like them"
    )
    disliked: list[Row] = Field(
        [], max_length=MOST_MARKS, description="rows of pictures, for less like them"
    )
    text: str = Field(
        "",
        max_length=MOST_LETTERS,
        description="words, added to the query by models that know words; of others, only "
        "pictures with these words in their names are searched",
    )
    text_weight: float = Field(
        WEIGHT,
        ge=0,
        le=100,
        description="weight of the words where they are added, that of the query being 1",
    )
    key: str | None = Field(
        None, description="of an earlier answer: refused if rows are of another gallery by now"
    )
    shown: list[Row] = Field(
        [],
        max_length=MOST_MATCHES,
        description="rows of the pictures shown before, in their places: each keeps its place "
        "unless another picture is clearly closer",
    )
    k: Whole = Field(24, ge=1, le=MOST_MATCHES, description="number of pictures")

    @model_validator(mode="after")
    def _one_of_three(self) -> Self:
        given = [n for n in ("picture", "example", "image") if getattr(self, n) is not None]
        if len(given) != 1:
            raise ValueError(
                f"give one of picture, example and image, not {' and '.join(given) or 'none'}"
            )
        if self.photo and self.picture is None:
            raise ValueError("photo needs a picture; give one")
        if both := set(self.liked) & set(self.disliked):
            raise ValueError(f"row {min(both)} is both liked and disliked; give it once")
        return self


class MatchOut(BaseModel):
    """A picture that answers."""

    rank: int = Field(description="place, from 1; nearest first where nothing was shown before")
    row: int
    title: str = Field(description="what a person calls what is on it")
    label: str = Field(description="its class")
    similarity: float
    name: str = Field(description="path of the file within its data set")
    thumbnail: str = Field(description="address of the picture, at most 256 pixels a side")
    original: str = Field(description="address of the picture as it is stored")


class Answer(BaseModel):
    """Pictures, nearest first."""

    model: str
    key: str = Field(description="of the encode artifact that answered")
    close: bool | None = Field(
        description="whether the nearest is as close as right answers are; null: nothing tells"
    )
    threshold: float | None = Field(description="similarity from which it is")
    reason: str | None = Field(description="why there are no pictures, if so")
    seconds: float
    matches: list[MatchOut]


class ExampleOut(BaseModel):
    """A sketch of the model's data set."""

    row: int
    title: str
    thumbnail: str
    original: str


class LookOut(BaseModel):
    """How the model's sketches look: what a drawing is rendered like before it is sent."""

    width: int
    height: int
    line: float = Field(description="width of strokes, as a share of the longer side")
    extent: float = Field(description="share of the picture that the box of all strokes takes")
    centre: tuple[float, float] = Field(description="of that box")


class ClosenessOut(BaseModel):
    """Which similarity is close in this gallery, and how well that tells right from wrong."""

    threshold: float | None
    n_right: int
    n_wrong: int
    right_kept: float | None
    wrong_refused: float | None
    n_unknown: int = Field(
        description="answers that it was found from where too few are known to be right, else 0"
    )


class ModelOut(BaseModel):
    """A model that is served."""

    name: str
    key: str
    n_pictures: int
    licence: str = Field(description="of the pictures; empty where none is known")
    takes_words: bool = Field(description="whether words are added to a query, or filter by name")
    look: LookOut
    closeness: ClosenessOut
    examples: list[ExampleOut]


class ModelsOut(BaseModel):
    """All of them, the first being the default."""

    models: list[ModelOut]


class MapSideOut(BaseModel):
    """Pictures or sketches of a map, one entry of every column each."""

    row: list[int]
    x: list[float] = Field(description="from the left, between 0 and 1")
    y: list[float] = Field(description="from above, between 0 and 1")
    title: list[str]
    label: list[str]
    name: list[str]
    entered: list[int] = Field(
        description="round of the training, from 1, in which each entered; 0: never; -1: it did "
        "not train, or training does not pace"
    )


class MapOut(BaseModel):
    """The pictures of a gallery in the plane, and sketches beside what they find."""

    key: str
    images: MapSideOut
    sketches: MapSideOut
    nearest: list[int] = Field(description="of each sketch, the position of a picture in `images`")
    right: list[bool | None] = Field(
        description="whether that picture is right; null where the gallery holds nothing right"
    )
    held_out: list[bool] = Field(description="whether the model did not learn from the sketch")


class ServedOut(BaseModel):
    """State of a model."""

    key: str
    n_pictures: int
    seconds_since_loaded: float
    problem: str | None = Field(description="why something newer could not be loaded")


class Health(BaseModel):
    """State of the server: 'degraded' while a newer model cannot be loaded."""

    status: Literal["ok", "degraded"]
    models: dict[str, ServedOut]


class Refusal(BaseModel):
    """Why there is no answer."""

    error: str
