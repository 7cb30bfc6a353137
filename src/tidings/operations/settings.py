"""Declarations of all settings, read from a file, the environment and the command line, in order of precedence.

    settings = load_settings({"port": 8000}).settings

    tidings.toml            environment variables
    port = 8000             TIDINGS_PORT=8000
    [spark]
    master = "local[4]"     TIDINGS_SPARK__MASTER=local[4]

A setting is declared once, with its description: the docs, `tidings config show` and validation derive from it.
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
"""Hosts that mean every address of the machine."""

RENAMED_SETTINGS = {
    "log": "metadata_log",
    "forwarded_from": "trusted_proxies",
    "stream.publications": "stream.batch_size",
    "stream.longest_pause": "stream.max_backoff",
    "delivery.retries": "delivery.retry_delays",
    "delivery.patience": "delivery.max_retry_after",
    "delivery.destinations": "delivery.max_destinations",
    "delivery.letters": "delivery.dead_letter_days",
    "delivery.overlap": "delivery.secret_overlap_hours",
    "objects.tell": "objects.notify",
    "objects.tell_author": "objects.notify_author",
}
"""Earlier names of settings. They are not accepted: the error names the new one."""


class ServicePart(StrEnum):
    """Parts of the service, which can run in separate processes."""

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
    """Settings of one table of the file. Unknown names are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SparkSettings(SettingsGroup):
    """Spark master and resources of the stream."""

    master: str | None = Field(
        default=None, description="Spark master, as for `--master`; `local[*]` if it is not set."
    )
    conf: dict[str, str] = Field(default_factory=dict, description="Further Spark settings, by name.")


class StreamSettings(SettingsGroup):
    """Batches, restarts and budgets of the stream."""

    batch_size: int = Field(
        default=10_000, ge=1, le=1_000_000, description="Maximum number of publications in a batch."
    )
    restarts: int = Field(
        default=5, ge=0, le=1_000, description="Maximum number of consecutive restarts after failures."
    )
    max_backoff: float = Field(
        default=60.0,
        gt=0,
        le=3_600,
        description="Maximum seconds before a restart; the delay starts at 1 and doubles each time.",
    )
    step_seconds: float = Field(
        default=30.0,
        gt=0,
        le=3_600,
        description="Maximum seconds of one step: decoding or matching a few publications, or explaining one match.",
    )
    step_memory: int = Field(
        default=2_048,
        ge=16,
        le=1_000_000,
        description="Megabytes that a task may allocate beyond what its worker uses. Linux only.",
    )
    suspend_after: int = Field(
        default=3,
        ge=1,
        le=1_000_000,
        description="Number of times that a subscription may exceed these budgets before it is suspended.",
    )


NOTIFICATION_SERVICES = (
    *("mailto", "mailtos", "sendgrid", "mailgun"),
    *("slack", "discord", "tgram", "gchat", "pover", "pbul", "workflow", "workflows"),
    *("matrix", "matrixs", "mmost", "mmosts", "rocket", "rockets", "nctalk", "nctalks"),
    *("signal", "signals", "gotify", "gotifys", "ntfy", "ntfys", "hassio", "hassios"),
    *("json", "jsons", "xml", "xmls", "form", "forms"),
)
"""Mail and chat services, at their own hosts or at one that the target names. Others act on the machine itself, speak
a rare protocol, or have parameters that were not reviewed."""


class DeliverySettings(SettingsGroup):
    """Delivery to destinations and to subscribers of the hub."""

    private_callbacks: bool = Field(
        default=False,
        description="Allow callbacks of the hub and destinations on this machine and in private networks.",
    )
    retry_delays: tuple[float, ...] = Field(
        default=(5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000),
        min_length=1,
        max_length=100,
        description="Seconds to wait after each failed delivery attempt; after the last one it is a dead letter.",
    )
    jitter: float = Field(
        default=0.1,
        ge=0,
        le=1,
        description="Maximum random extra delay before a retry, as a share of the delay.",
    )
    max_retry_after: int = Field(
        default=86_400,
        ge=0,
        le=604_800,
        description="Maximum seconds of a receiver's `Retry-After` that are respected.",
    )
    timeout: float = Field(
        default=20.0, gt=0, le=600, description="Maximum seconds of a request to a receiver, in total."
    )
    workers: int = Field(default=32, ge=1, le=1_000, description="Maximum number of concurrent deliveries.")
    per_host: int = Field(
        default=8, ge=1, le=1_000, description="Maximum number of concurrent deliveries to one host."
    )
    max_destinations: int = Field(
        default=20, ge=1, le=100_000, description="Maximum number of destinations per subscriber."
    )
    dead_letter_days: int = Field(
        default=30, ge=1, le=3_650, description="Days that dead letters are stored."
    )
    secret_overlap_hours: int = Field(
        default=24, ge=0, le=8_760, description="Hours that an old secret still signs after a rotation."
    )
    brokers: tuple[str, ...] = Field(
        default=(), description="Kafka brokers that destinations may use, as `host:port`."
    )
    services: tuple[str, ...] = Field(
        default=NOTIFICATION_SERVICES, description="Apprise services that destinations may use."
    )


class ObjectSettings(SettingsGroup):
    """Notifications about objects of the added databases."""

    notify: bool = Field(
        default=True, description="Notify the subscribers whom changes concern while the service runs."
    )
    notify_author: bool = Field(default=False, description="Notify the author of a change, too.")
    publish: bool = Field(default=False, description="Publish changes as events, too.")


class Limits(SettingsGroup):
    """Limits of input, each as `name=number name=number`."""

    document: str = Field(default="", description="Limits of XML documents: `depth=100 nodes=5000`.")
    graph: str = Field(default="", description="Limits of graphs.")
    xpath: str = Field(default="", description="Limits of XPath subscriptions.")
    gql: str = Field(default="", description="Limits of graph subscriptions.")
    rules: str = Field(default="", description="Limits of rules over metadata.")
    query: str = Field(default="", description="Limits of queries over metadata.")
    sparql: str = Field(default="", description="Limits of SPARQL queries.")
    parser: str = Field(default="", description="Limits of parser processes: `seconds=10 memory=1024`.")
    api: str = Field(default="", description="Limits of the HTTP API: `body=1000000 rate=600 burst=100`.")


class RetentionSettings(SettingsGroup):
    """Retention times of data."""

    pipeline: Duration = Field(
        default="2 days", description="Time that the measurements of the pipeline are stored."
    )


class LogSettings(SettingsGroup):
    """Logging to standard error."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        default="warning", description="Lowest level that is logged; requests and batches are `info`."
    )
    format: Literal["console", "json"] = Field(
        default="console", description="Log format: plain lines, or JSON."
    )


class TraceSettings(SettingsGroup):
    """Tracing with OpenTelemetry."""

    endpoint: str | None = Field(
        default=None,
        description="OTLP/HTTP endpoint, for example `http://collector:4318`; without it nothing is traced.",
    )
    headers: dict[str, SecretStr] = Field(
        default_factory=dict, description="Headers of each request to the endpoint."
    )
    service: str = Field(default="tidings", description="Name of the service in traces.")
    ratio: float = Field(default=1.0, ge=0, le=1, description="Share of publications that are traced.")


class Settings(BaseSettings):
    """All settings."""

    model_config = SettingsConfigDict(
        env_prefix=VARIABLE_PREFIX,
        env_nested_delimiter=NESTING_DELIMITER,
        extra="forbid",
        frozen=True,
        env_ignore_empty=True,
    )

    home: Path = Field(default=Path(".tidings"), description="Home folder of the service.")
    store: SecretStr | None = Field(
        default=None,
        description="Store outside the home folder: `sqlite:///path` or `postgresql://...`",
    )
    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(default=8080, ge=0, le=65_535, description="Port to listen on; 0 chooses a free one.")
    public_url: str | None = Field(
        default=None, description="URL under which others reach the service, for example behind a proxy."
    )
    trusted_proxies: str = Field(
        default="127.0.0.1",
        description="Proxies whose `X-Forwarded-` headers are trusted: addresses, or `*`.",
    )
    contact: str | None = Field(
        default=None, description="Contact address that is sent to the sites whose feeds are polled."
    )
    rpc_token: SecretStr | None = Field(
        default=None,
        description="Token for XML-RPC, `/metadata` and `/objects`, as an administrator's token.",
    )
    follow: str | None = Field(default=None, description="Metadata provider to follow.")
    metadata_log: SecretStr | None = Field(
        default=None, description="Metadata log that several providers share."
    )
    metadata_batch: int = Field(
        default=1_000,
        ge=1,
        le=100_000,
        description="Entries of the metadata log that are applied in one transaction.",
    )
    migrate: bool = Field(
        default=True,
        description="Migrate the store on start; if false, run `tidings store migrate`.",
    )
    metrics: Literal["administrators", "open"] = Field(
        default="administrators",
        description="Who may read `/metrics`: callers with an administrator's token, or everyone.",
    )
    drain: float = Field(
        default=20.0,
        gt=0,
        le=3_600,
        description="Seconds that work in progress has to finish when the service shuts down.",
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
        """Return the URL of the service: the public one, or else the one that it listens on."""
        host = "127.0.0.1" if self.listens_everywhere() else self.host
        return self.public_url or f"http://{f'[{host}]' if ':' in host else host}:{self.port}"
