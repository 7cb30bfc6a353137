"""The settings of a service: a file, the environment, the command line; each outweighs those before it.

    settings = load(given={"port": 8000}).settings

    tidings.toml            TIDINGS_... in the environment
    port = 8000             TIDINGS_PORT=8000
    [spark]
    master = "local[4]"     TIDINGS_SPARK__MASTER=local[4]

A setting is declared once, in a model below, with its sentence: the docs, `tidings config show` and the checks follow.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from tidings.core import durations
from tidings.errors import InputError

VARIABLE_PREFIX, NESTING_DELIMITER = "TIDINGS_", "__"
WILDCARD_HOSTS = ("0.0.0.0", "::", "")
"""Hosts that stand for every address of the machine."""


class ServicePart(StrEnum):
    """What a service is made of; each can run alone."""

    API = "api"
    STREAM = "stream"
    DELIVERY = "delivery"


def _duration(text: str) -> str:
    try:
        durations.parse(text)
    except InputError as problem:
        raise ValueError(problem.message()) from problem
    return text


Duration = Annotated[str, AfterValidator(_duration)]
"""`10 minutes`, `2 days`."""


class SettingsGroup(BaseModel):
    """Settings of one table of the file. A name that is no setting is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SparkSettings(SettingsGroup):
    """Where the stream runs."""

    master: str | None = Field(
        default=None, description="Where Spark runs, as `--master` says; `local[*]` if nowhere."
    )
    conf: dict[str, str] = Field(default_factory=dict, description="Further settings of Spark, by name.")


class StreamSettings(SettingsGroup):
    """How the stream reads, and what happens when it fails."""

    publications: int = Field(
        default=10_000, ge=1, le=1_000_000, description="How many a batch may have at most."
    )
    restarts: int = Field(
        default=5, ge=0, le=1_000, description="How often in a row a stream that failed is started again."
    )
    longest_pause: float = Field(
        default=60.0,
        gt=0,
        le=3_600,
        description="Seconds before a start at most: they double each time, from 1 on.",
    )
    step_seconds: float = Field(
        default=30.0,
        gt=0,
        le=3_600,
        description="Seconds that one step may take: decoding or matching a few publications, or explaining one match.",
    )
    step_memory: int = Field(
        default=2_048,
        ge=16,
        le=1_000_000,
        description="Megabytes that a task may allocate beyond what its worker has. Only on Linux.",
    )
    suspend_after: int = Field(
        default=3,
        ge=1,
        le=1_000_000,
        description="How often a subscription may exceed these budgets until it is suspended.",
    )


NOTIFICATION_SERVICES = (
    *("mailto", "mailtos", "sendgrid", "mailgun"),
    *("slack", "discord", "tgram", "gchat", "pover", "pbul", "workflow", "workflows"),
    *("matrix", "matrixs", "mmost", "mmosts", "rocket", "rockets", "nctalk", "nctalks"),
    *("signal", "signals", "gotify", "gotifys", "ntfy", "ntfys", "hassio", "hassios"),
    *("json", "jsons", "xml", "xmls", "form", "forms"),
)
"""Services of mail and chat, at hosts of their own or at one that a target names. Others do something to the machine
itself, speak a protocol that few need, or have parameters that nobody here has looked at."""


class DeliverySettings(SettingsGroup):
    """What is told to others."""

    private_callbacks: bool = Field(
        default=False,
        description="Let the hub and destinations lead to this machine and to private networks.",
    )
    retries: tuple[float, ...] = Field(
        default=(5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000),
        min_length=1,
        max_length=100,
        description="Seconds to wait after each failed attempt to deliver; after the last it is a dead letter.",
    )
    jitter: float = Field(
        default=0.1, ge=0, le=1, description="Up to which part of itself a wait is longer, by chance."
    )
    patience: int = Field(
        default=86_400, ge=0, le=604_800, description="Seconds that a receiver may ask to be left alone."
    )
    timeout: float = Field(
        default=20.0, gt=0, le=600, description="Seconds that a receiver has to answer, all in all."
    )
    workers: int = Field(default=32, ge=1, le=1_000, description="How many deliveries are made at once.")
    per_host: int = Field(default=8, ge=1, le=1_000, description="How many of those to one host.")
    destinations: int = Field(
        default=20, ge=1, le=100_000, description="How many destinations a subscriber may have."
    )
    letters: int = Field(default=30, ge=1, le=3_650, description="Days that dead letters are kept.")
    overlap: int = Field(
        default=24, ge=0, le=8_760, description="Hours that an old secret signs beside the new one."
    )
    brokers: tuple[str, ...] = Field(
        default=(), description="The brokers of Kafka that destinations may name, `host:port`."
    )
    services: tuple[str, ...] = Field(
        default=NOTIFICATION_SERVICES, description="The services of Apprise that destinations may name."
    )


class ObjectSettings(SettingsGroup):
    """What is told about objects of the databases that were added."""

    tell: bool = Field(default=True, description="Tell whom changes concern while the service runs.")
    tell_author: bool = Field(default=False, description="Tell those, too, who made the changes themselves.")
    publish: bool = Field(default=False, description="Publish the changes as events, too.")


class Limits(SettingsGroup):
    """Limits on what is taken, each as `name=number name=number`."""

    document: str = Field(default="", description="Of XML documents: `depth=100 nodes=5000`.")
    graph: str = Field(default="", description="Of graphs.")
    xpath: str = Field(default="", description="Of XPath subscriptions.")
    gql: str = Field(default="", description="Of subscriptions to graphs.")
    rules: str = Field(default="", description="Of rules over metadata.")
    query: str = Field(default="", description="Of queries over metadata.")
    sparql: str = Field(default="", description="Of queries in SPARQL.")
    parser: str = Field(default="", description="Of parser processes: `seconds=10 memory=1024`.")
    api: str = Field(default="", description="Of the HTTP API: `body=1000000 rate=600 burst=100`.")


class RetentionSettings(SettingsGroup):
    """How long things are kept."""

    pipeline: Duration = Field(
        default="2 days", description="What the pipeline did over time, for the charts."
    )


class LogSettings(SettingsGroup):
    """What is logged, to standard error."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        default="warning", description="From which level on; requests and batches are `info`."
    )
    format: Literal["console", "json"] = Field(default="console", description="Lines for people, or JSON.")


class TraceSettings(SettingsGroup):
    """OpenTelemetry."""

    endpoint: str | None = Field(
        default=None,
        description="Where traces are sent, over OTLP/HTTP: `http://collector:4318`. Else none are.",
    )
    headers: dict[str, SecretStr] = Field(
        default_factory=dict, description="What the endpoint wants to see in each request."
    )
    service: str = Field(default="tidings", description="The name of the service in traces.")
    ratio: float = Field(default=1.0, ge=0, le=1, description="The share of publications that is traced.")


class Settings(BaseSettings):
    """All settings."""

    model_config = SettingsConfigDict(
        env_prefix=VARIABLE_PREFIX,
        env_nested_delimiter=NESTING_DELIMITER,
        extra="forbid",
        frozen=True,
        env_ignore_empty=True,
    )

    home: Path = Field(default=Path(".tidings"), description="The folder everything lives in.")
    store: SecretStr | None = Field(
        default=None,
        description="Another store than the home folder's: `sqlite:///path` or `postgresql://...`",
    )
    host: str = Field(default="127.0.0.1", description="The address to listen at.")
    port: int = Field(default=8080, ge=0, le=65_535, description="The port; 0 takes one that is free.")
    public_url: str | None = Field(
        default=None, description="How others reach the service, behind a proxy say."
    )
    forwarded_from: str = Field(
        default="127.0.0.1",
        description="The proxies whose `X-Forwarded-` headers are believed: addresses, or `*`.",
    )
    contact: str | None = Field(default=None, description="An address for those whose sites are asked.")
    rpc_token: SecretStr | None = Field(
        default=None,
        description="Opens XML-RPC, `/metadata` and `/objects`, as an administrator's token does.",
    )
    follow: str | None = Field(default=None, description="Another provider whose metadata is followed.")
    log: SecretStr | None = Field(default=None, description="A log of metadata that several providers share.")
    metadata_batch: int = Field(
        default=1_000,
        ge=1,
        le=100_000,
        description="Entries of the log of metadata that are applied at once.",
    )
    migrate: bool = Field(
        default=True,
        description="Bring the store to the newest version on start; else `tidings store migrate` does.",
    )
    metrics: Literal["administrators", "open"] = Field(
        default="administrators",
        description="Who may read `/metrics`: those with an administrator's token, or all.",
    )
    drain: float = Field(
        default=20.0,
        gt=0,
        le=3_600,
        description="Seconds that what is under way has to end, when the service ends.",
    )

    spark: SparkSettings = SparkSettings()
    stream: StreamSettings = StreamSettings()
    delivery: DeliverySettings = DeliverySettings()
    objects: ObjectSettings = ObjectSettings()
    limits: Limits = Limits()
    retention: RetentionSettings = RetentionSettings()
    logging: LogSettings = LogSettings()
    traces: TraceSettings = TraceSettings()

    def store_url(self) -> str | None:
        return self.store.get_secret_value() if self.store else None

    def listens_everywhere(self) -> bool:
        return self.host in WILDCARD_HOSTS

    def reached_at(self) -> str:
        """The address that others use: the public one, or else where the service listens."""
        host = "127.0.0.1" if self.listens_everywhere() else self.host
        return self.public_url or f"http://{f'[{host}]' if ':' in host else host}:{self.port}"
