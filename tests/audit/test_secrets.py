"""Secrets: who may hear them, and that nobody else does."""

from __future__ import annotations

import os
import ssl
import stat
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from rollview import errors
from rollview.catalog import Catalog
from rollview.cli.main import main
from rollview.core.references import Secret, secret_variables
from rollview.core.tls import postgres_tls, system_certificates
from rollview.engine import hidden, session
from rollview.project import load_project, start_project
from rollview.sources.binlog.server import BinlogServer
from rollview.sources.debezium.kafka import KafkaStreams
from rollview.sources.postgres.server import PostgresServer as Driver
from rollview.sources.settings import SourceSettings, TableSettings
from tests.servers.postgres import PostgresServer
from tests.servers.tls import Authority, tls_front

CANARY = "S3cr3tCanary"
TABLES = (TableSettings("t", "t"),)


# A PostgreSQL server that is not certainly here shows who it is: source and catalog alike.


@dataclass(frozen=True, slots=True)
class Remote:
    """A server behind TLS. ``where``: parameters of a connection to it, by a name that is not this machine's."""

    authority: Authority
    where: str

    def url(self, **more: object) -> str:
        options = "".join(f"&{name}={value}" for name, value in more.items())
        return f"postgresql://postgres@/postgres?{self.where}{options}"


@pytest.fixture(scope="module")
def remote(postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Remote]:
    authority = Authority.make(tmp_path_factory.mktemp("tls") / "right")
    with tls_front(*authority.sign("db.example"), postgres_server.port) as port:
        yield Remote(authority, f"host=db.example&hostaddr=127.0.0.1&port={port}")


def read_as_source(url: str) -> None:
    with Driver("bank", url, 10.0).connected() as connection:
        connection.execute("SELECT 1")


def read_as_catalog(url: str) -> None:
    # There is none in it: who gets so far has shaken hands.
    with pytest.raises(errors.NotFound):
        Catalog.open(url)


WAYS = pytest.mark.parametrize("read", [read_as_source, read_as_catalog])


@pytest.mark.postgres
@WAYS
def test_the_right_authority_lets_source_and_catalog_in(remote: Remote, read: Callable[[str], None]) -> None:
    read(remote.url(sslrootcert=remote.authority.certificate))


@pytest.mark.postgres
@WAYS
def test_a_server_of_another_authority_is_not_read(remote: Remote, read: Callable[[str], None], tmp_path: Path) -> None:
    other = Authority.make(tmp_path / "wrong")
    with pytest.raises(errors.RollviewError, match="certificate") as caught:
        read(remote.url(sslrootcert=other.certificate))
    assert "sslrootcert=PATH" in caught.value.message


@pytest.mark.postgres
@WAYS
def test_without_a_word_the_certificate_is_checked_against_the_system(
    remote: Remote, read: Callable[[str], None]
) -> None:
    with pytest.raises(errors.RollviewError, match="certificate"):
        read(remote.url())


@pytest.mark.postgres
@WAYS
def test_the_drivers_own_openssl_finds_the_systems_certificates(
    remote: Remote, read: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SimpleNamespace(cafile=str(remote.authority.certificate))
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: store)
    read(remote.url())
    read(remote.url(sslrootcert="system"))
    with pytest.raises(errors.RollviewError):
        read(remote.url().replace("db.example", "other.example"))


@pytest.mark.postgres
@WAYS
def test_an_address_may_ask_for_less(remote: Remote, read: Callable[[str], None]) -> None:
    read(remote.url(sslmode="require"))


def test_the_systems_certificates_are_a_file_that_openssl_reads() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(system_certificates())
    assert context.cert_store_stats()["x509_ca"] > 0


@pytest.mark.parametrize(
    ("given", "environment"),
    [
        ({"service": "bank"}, {}),
        ({}, {"PGSERVICE": "bank"}),
        ({}, {"PGHOST": "db.example"}),
        ({"host": ""}, {"PGHOST": "db.example"}),
        ({"host": "localhost"}, {"PGHOSTADDR": "192.0.2.1"}),
        ({"host": "localhost", "hostaddr": "192.0.2.1"}, {}),
        ({"host": "localhost,db.example"}, {}),
        ({"host": "localhost.example"}, {}),
        ({"host": "db.example", "sslmode": ""}, {}),
        ({"host": "db.example"}, {"PGSSLMODE": "disable"}),
    ],
)
def test_what_may_lead_elsewhere_is_not_local(given: dict[str, str], environment: dict[str, str]) -> None:
    assert postgres_tls(given, environment) == {"sslmode": "verify-full", "sslrootcert": system_certificates()}


@pytest.mark.parametrize("host", ["", "localhost", "127.0.0.1", "127.1.2.3", "::1", "/run/postgresql", "@socket"])
def test_this_machine_needs_no_certificate(host: str) -> None:
    assert postgres_tls({"host": host}, {}) == {}


def test_what_the_address_or_the_environment_says_of_certificates_stays() -> None:
    assert postgres_tls({"host": "h", "sslmode": "require"}, {}) == {}
    assert postgres_tls({"host": "h", "sslrootcert": "ca.pem"}, {}) == {"sslmode": "verify-full"}
    assert postgres_tls({"host": "h"}, {"PGSSLROOTCERT": "ca.pem"}) == {"sslmode": "verify-full"}


def test_a_remote_broker_needs_a_security_protocol() -> None:
    for address in ("kafka://broker.example:9092/bank", "kafka://localhost:9092,broker.example:9092/bank"):
        with pytest.raises(errors.UsageError, match="not on this machine") as caught:
            KafkaStreams("bank", address, ["t"], {})
        assert "kafka.security.protocol" in (caught.value.hint or "")
        KafkaStreams("bank", address, ["t"], {"security.protocol": "plaintext"}).close()
    KafkaStreams("bank", "kafka://127.0.0.1:9092,[::1]:9092/bank", ["t"], {}).close()


# Settings refer to secrets, and hold none.


@pytest.mark.parametrize(
    "option",
    [
        "kafka.sasl.password",
        "kafka.ssl.key.password",
        "kafka.ssl.keystore.password",
        "kafka.ssl.key.pem",
        "kafka.sasl.oauthbearer.client.secret",
        "kafka.sasl.oauthbearer.assertion.private.key.pem",
        "kafka.sasl.oauthbearer.assertion.private.key.passphrase",
        "kafka.sasl.jaas.config",
        "token",
    ],
)
def test_a_secret_among_the_options_is_refused(option: str) -> None:
    with pytest.raises(errors.UsageError, match="does not belong") as caught:
        SourceSettings("debezium", "kafka://localhost:9092/bank", TABLES, {option: CANARY})
    assert CANARY not in str(caught.value.to_json())
    SourceSettings("debezium", "kafka://localhost:9092/bank", TABLES, {option: "env:BANK_SECRET"})


@pytest.mark.parametrize("option", ["kafka.ssl.ca.pem", "kafka.ssl.key.location", "kafka.sasl.username"])
def test_what_is_no_secret_is_taken(option: str) -> None:
    assert SourceSettings("debezium", "kafka://localhost:9092/bank", TABLES, {option: "x"}).options == {option: "x"}


SPELLINGS = [
    f"postgresql://u:{CANARY}@h/d",
    f"postgresql://u:a/{CANARY}@h/d",
    f"postgresql://u:a?{CANARY}@h/d",
    f"postgresql://u:a#{CANARY}@h/d",
    f"postgresql://u@h/d?password={CANARY}",
    f"postgresql://u@h/d?sslmode=require&sslpassword={CANARY}",
    f"host=h password={CANARY}",
]


@pytest.mark.parametrize("url", SPELLINGS)
def test_init_refuses_a_password_however_it_is_spelled(url: str, tmp_path: Path) -> None:
    with pytest.raises(errors.UsageError, match="password") as caught:
        start_project(tmp_path / "shop", url)
    assert CANARY not in str(caught.value.to_json())
    assert not (tmp_path / "shop").exists()


@pytest.mark.parametrize("url", SPELLINGS)
def test_a_password_in_the_projects_file_is_refused(url: str, tmp_path: Path) -> None:
    (tmp_path / "rollview.yaml").write_text(f"version: 1\ncatalog: '{url}'\n")
    with pytest.raises(errors.UsageError, match="password") as caught:
        load_project(tmp_path).catalog_url()
    assert CANARY not in str(caught.value.to_json())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.hadoop.fs.s3a.secret.key", CANARY),
        ("spark.hadoop.fs.azure.account.key.shop.dfs.core.windows.net", CANARY),
        ("spark.hadoop.javax.jdo.option.ConnectionPassword", CANARY),
        ("remote", f"sc://h:15002/;token={CANARY}"),
    ],
)
def test_a_secret_among_sparks_settings_is_refused(name: str, value: str, tmp_path: Path) -> None:
    (tmp_path / "rollview.yaml").write_text(f"version: 1\nspark: {{'{name}': '{value}'}}\n")
    with pytest.raises(errors.UsageError, match="does not belong") as caught:
        load_project(tmp_path).spark_conf()
    assert CANARY not in str(caught.value.to_json())


# What may hold a secret is never quoted.


def _told(error: BaseException) -> str:
    facts = str(error.to_json()) if isinstance(error, errors.RollviewError) else ""
    return "".join(traceback.format_exception(error)) + facts


@pytest.mark.parametrize(
    "url",
    [f"sc://h:15002;token={CANARY}", f"sc://h:{CANARY}", f"sc://h/x;token={CANARY}", f"http://h/;token={CANARY}"],
)
def test_a_spark_connect_address_that_cannot_be_read_is_not_quoted(url: str) -> None:
    with pytest.raises(errors.UsageError) as caught:
        session.start({"remote": url})
    assert CANARY not in _told(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        f"mysql://u:{CANARY}/et@h/db",
        f"mysql://u:33/{CANARY}@h/db",
        f"mysql://u:33?{CANARY}@h/db",
        f"mysql://u:33#{CANARY}@h/db",
        f"mysql://u:a@h:{CANARY}/db",
        f"mysql://[{CANARY}/db",
    ],
)
def test_a_binlog_address_that_cannot_be_read_is_not_quoted(url: str) -> None:
    with pytest.raises(errors.UsageError, match="cannot be understood") as caught:
        BinlogServer("bank", "mysql", url, 10.0)
    assert CANARY not in _told(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://u:{CANARY}/et@h/db",
        f"postgresql://u:33/{CANARY}@h/db",
        f"postgresql://u:a@{CANARY}@h/db",
        f"postgresql://u:a@h:{CANARY}/db",
        f"host=h pass word={CANARY}",
    ],
)
def test_a_postgres_address_that_cannot_be_read_is_not_quoted(url: str) -> None:
    with pytest.raises(errors.RollviewError, match=r"cannot be understood|does not answer") as caught:
        read_as_source(url)
    assert CANARY not in _told(caught.value)
    if "://" in url:
        with pytest.raises(errors.RollviewError) as refused:
            Catalog.open(url.replace("@h/", "@127.0.0.1:1/"))
        assert CANARY not in _told(refused.value)


@pytest.mark.parametrize("url", [f"kafka://u:{CANARY}@h:9092/bank", f"kafka://h:9092/bank?password={CANARY}"])
def test_a_kafka_address_that_cannot_be_read_is_not_quoted(url: str) -> None:
    with pytest.raises(errors.UsageError, match="cannot be understood") as caught:
        KafkaStreams("bank", url, ["t"], {})
    assert CANARY not in _told(caught.value)


@pytest.mark.parametrize("reference", [f"env:postgresql://u:{CANARY}@h/d", f"file:x://u:{CANARY}@h/d"])
def test_a_secret_behind_a_references_prefix_is_not_quoted(reference: str, tmp_path: Path) -> None:
    (tmp_path / "rollview.yaml").write_text(f"version: 1\ncatalog: '{reference}'\n")
    with pytest.raises(errors.UsageError, match="has to name") as caught:
        load_project(tmp_path).catalog_url()
    assert CANARY not in _told(caught.value)


@pytest.mark.parametrize("value", [f"*{CANARY}", f"!{CANARY} x", f"%{CANARY}", f"a: {CANARY}: b", f'"{CANARY}'])
def test_a_file_that_is_no_yaml_is_not_quoted(value: str, tmp_path: Path) -> None:
    (tmp_path / "rollview.yaml").write_text(f"version: 1\ncatalog: {value}\n")
    with pytest.raises(errors.UsageError, match=r"line [23]") as caught:
        load_project(tmp_path)
    assert CANARY not in _told(caught.value)


@pytest.mark.parametrize("form", [(), ("--debug",), ("--output", "json")])
def test_an_address_in_the_place_of_a_name_is_told_without_its_password(
    form: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start_project(tmp_path)
    with pytest.raises(SystemExit):
        main(["source", "add", f"postgresql://u:a/{CANARY}@h/d", "--project-dir", str(tmp_path), *form])
    told = capsys.readouterr()
    assert CANARY not in told.out + told.err
    assert "postgresql://u:***@h/d" in told.err.replace("\n", "")


@pytest.mark.parametrize("form", [(), ("--output", "json")])
def test_arguments_that_are_not_expected_are_not_quoted(
    form: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["status", f"postgresql://u:{CANARY}@h/d", *form])
    assert ended.value.code == 2
    told = capsys.readouterr()
    assert CANARY not in told.out + told.err
    assert "cannot be understood" in told.err


def test_an_address_in_the_place_of_a_kind_is_not_quoted() -> None:
    from rollview.sources.kinds import open_new

    with pytest.raises(errors.UsageError, match="There is no kind") as caught:
        open_new("bank", SourceSettings(f"postgresql://u:{CANARY}@h/d", os.devnull, TABLES))
    assert CANARY not in _told(caught.value)


# Secrets that Spark needs


def test_java_options_are_no_place_for_a_secret() -> None:
    with pytest.raises(errors.UsageError, match="'ps' shows"):
        session.start({"spark.driver.extraJavaOptions": Secret(f"-Dpin={CANARY}")})


def test_a_second_file_of_properties_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--properties-file mine.conf pyspark-shell")
    with pytest.raises(errors.UsageError, match="takes only one"), hidden.told_by_file({"spark.pin": CANARY}):
        pass


def test_the_file_for_spark_is_ours_alone_and_gone_afterwards(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--verbose pyspark-shell")
    with hidden.told_by_file({"spark.pin": f"a b\\{CANARY}\n=é😀"}):
        (file,) = tmp_path.iterdir()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert os.environ["PYSPARK_SUBMIT_ARGS"].endswith(f"--properties-file {file} --verbose pyspark-shell")
    assert not list(tmp_path.iterdir())
    assert os.environ["PYSPARK_SUBMIT_ARGS"] == "--verbose pyspark-shell"


def test_what_a_reference_refers_to_does_not_show_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PIN", CANARY)
    (tmp_path / "rollview.yaml").write_text("version: 1\nspark: {spark.pin: 'env:PIN'}\n")
    conf = load_project(tmp_path).spark_conf()
    assert conf == {"spark.pin": CANARY}
    assert CANARY not in repr(conf)
    assert "PIN" in secret_variables()
