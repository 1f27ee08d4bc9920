"""
Publishes now-playing events to a hub, reads what is on air, and verifies webhooks.

One file: copy it beside your program. It needs Python 3.9 or later and paho-mqtt 1.6 or 2.x; `create_https_publisher`
needs neither paho nor anything else, `verify_push` needs PyJWT and cryptography. docs/clients/python.md shows how.

All times are seconds. Every client has a thread of its own, on which its callbacks are called: they must not wait.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import calendar
import concurrent.futures
import datetime
import errno
import hashlib
import http.client
import json
import logging
import os
import random
import re
import ssl
import stat
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from typing import Any, Literal, NamedTuple, TypedDict, Union

try:
    from paho.mqtt import client as mqtt
except ImportError:  # publishing over HTTPS and verifying pushes do without
    mqtt = None  # type: ignore[assignment]

__all__ = [
    "ERROR_CODES",
    "PUSH_REFUSALS",
    "ClientError",
    "ControlState",
    "EventRefused",
    "Message",
    "NowPlaying",
    "Push",
    "PushRefused",
    "Text",
    "Track",
    "connect_publisher",
    "connect_subscriber",
    "create_https_publisher",
    "verify_push",
]

_log = logging.getLogger("now_playing_hub")

ERROR_CODES = {
    "option.invalid": "an option is missing or wrong: the message names it",
    "event.unreadable": "the event is no object that JSON can carry",
    "login.refused": "user name, password or way to log in refused: only a person can help",
    "feedback.denied": "the credential may not read the feedback of this institution",
    "connection.lost": "there is no connection, the client tries again by itself",
    "hub.unavailable": "the hub did not take the event, and the client gave up",
    "event.refused": "the hub refused an event that nobody waits for",
    "superseded": "not worth sending any more: too old, expired, or a newer one is published",
    "full": "too many events wait for the hub; this one was not taken in",
    "closed": "the client was closed before the hub had answered",
    "outbox.locked": "another process uses this outbox",
    "outbox.unusable": "the outbox cannot be read or written, or is no outbox",
    "outbox.damaged": "lines of the outbox were unreadable, and left out",
    "browser.unsupported": "a browser has no files: leave out what needs them",
    "livestreams.full": "more livestreams than are kept; those that were silent longest are left out",
    "filter.denied": "a filter is not permitted; the others stay",
}
"""The codes of `ClientError`, with what they mean: those of the JavaScript library. They are stable."""


class ClientError(Exception):
    """An error with a stable `code` of `ERROR_CODES`. Its text says what happened in this case."""

    def __init__(self, code: str, message: str | None = None) -> None:
        super().__init__(message or ERROR_CODES[code])
        self.code = code


class EventRefused(Exception):
    """
    The hub has decided against an event: to send it again unchanged would not help.

    `outcome`: `blocked`, `invalid` or `failed`. `errors`: what is wrong, each with `path`, `message` and `errorCode`.
    """

    def __init__(self, outcome: str, errors: Sequence[Remark]) -> None:
        # A report may have a hundred errors of any length. A line of a log shows five, and 300 characters of each.
        reasons = [f"{error['path']} {error['message']}"[:300] for error in errors[:5]]
        if len(errors) > 5:
            reasons.append(f"and {len(errors) - 5} more")
        super().__init__(f"{outcome}: {'; '.join(reasons)}")
        self.outcome = outcome
        self.errors = errors


# --- Events and reports -----------------------------------------------------------------------------------------------

# <made by `npm run docs` from event/kinds/>


class ContributorNormDb(TypedDict):
    """Reference to an entity in a central norm catalogue"""

    type: str
    id: str


class _RequiredContributor(TypedDict):
    name: str
    role: Literal["artist", "author", "composer", "performer", "conductor", "choirleader", "ensemble", "orchestra",
        "soloist", "producer", "engineer"]


class Contributor(_RequiredContributor, total=False):
    """An involved artist. Further fields are carried through."""

    # Reference to an entity in a central norm catalogue
    normDb: ContributorNormDb | None
    # ISNI ID if available
    isni: str | None
    # Link to an external reference
    url: str | None


class _RequiredService(TypedDict):
    type: Literal["Event", "Livestream", "PermanentLivestream"]
    # External identifier of the livestream, of the form `crid://<authority>/<id>`
    externalId: str
    # Core ID of the publisher, `urn:org:publisher:<id>`. Over HTTPS its external ID is accepted as well and converted.
    publisherId: str


class Service(_RequiredService, total=False):
    """
    A livestream that plays the element. Further fields are carried through, except for `topic`: the service says
    what became of the event there, and drops one that is sent.
    """

    # Institution the livestream belongs to, `urn:org:institution:<id>`. Required over MQTT, where it must agree with
    # the inbox topic.
    institutionId: str
    # Identifier of the livestream, `urn:org:permanent-livestream:<id>`. Completed by the service.
    id: str


class _RequiredReference(TypedDict):
    type: Literal["Episode", "Section", "Publication", "Broadcast", "Show", "Season", "Article"]
    externalId: str


class Reference(_RequiredReference, total=False):
    """A related external entity."""

    id: str
    title: str
    url: str
    alternateIds: list[str]


class _RequiredMediaItem(TypedDict):
    type: Literal["cover", "artist", "anchor", "audio", "video"]
    url: str
    description: str


class MediaItem(_RequiredMediaItem, total=False):
    """A media file such as a cover. Further fields are carried through."""

    # URL template containing a `{width}` placeholder
    templateUrl: str | None
    attribution: str | None
    # Marks fallback media that subscribers may filter out
    isFallback: bool


class EventPlugin(TypedDict, total=False):
    """Addresses one connected service. Further fields are carried through."""

    # Type of the plugin target
    type: str
    id: str
    # Set to true: the target does not receive this event
    isDeactivated: bool


class _RequiredTrackEvent(TypedDict):
    # Type of the element that triggered the event
    type: Literal["audio", "commercial", "jingle", "live", "music", "news", "traffic", "weather"]
    # When the element starts; events of a livestream are ordered by it. ISO 8601 with UTC offset
    start: str
    # Estimated length in seconds. The start of the next element defines the end of this one.
    length: float
    # Representative title for external use
    title: str
    # The playing livestreams, at most 200 different ones; the same twice counts once
    services: list[Service]
    # Identifier, unique within a publisher, that connects next and playing items
    playlistItemId: str


class TrackEvent(_RequiredTrackEvent, total=False):
    """A track of a livestream: what plays now (`track.playing`), what plays next (`track.next`)."""

    # Required over MQTT; over HTTPS it must equal the name in the URL
    event: Literal["de.org.hub.v1.radio.track.playing", "de.org.hub.v1.radio.track.next"]
    # Pre-formatted artist text
    artist: str | None
    # Full details of involved artists
    contributors: list[Contributor] | None
    # Related external entities
    references: list[Reference] | None
    # References to tracks in music-database instances; ideally includes the common instance
    hfdbIds: list[str] | None
    # Original ID in the publisher's system
    externalId: str | None
    # ISRC code if the element is a music track
    isrc: str | None
    # Album reference under which the ISRC was published
    upc: str | None
    # Reference to the original delivery, if available
    mpn: str | None
    # Media files such as cover or artist image
    media: list[MediaItem] | None
    # For third-party metadata distribution or connected services
    plugins: list[EventPlugin] | None
    # Inserted by the service as a string-formatted number; one sent by a publisher is replaced. Do not assume digits
    # only.
    id: str


class _RequiredControlEvent(TypedDict):
    event: Literal["de.org.hub.v1.radio.control"]
    # Which control bit; states with different names live side by side
    name: str
    state: bool
    # When the state begins; the newest state of a name wins. ISO 8601 with UTC offset
    time: str
    # From then on receivers drop the state. ISO 8601 with UTC offset
    validUntil: str
    # The playing livestreams, at most 200 different ones; the same twice counts once
    services: list[Service]


class ControlEvent(_RequiredControlEvent, total=False):
    """A control bit such as a traffic announcement. Further fields are carried through."""

    # Inserted by the service as a string-formatted number; one sent by a publisher is replaced. Do not assume digits
    # only.
    id: str


class _RequiredDataEvent(TypedDict):
    event: Literal["de.org.hub.v1.radio.data"]
    # When the data begins to hold; the newest wins. ISO 8601 with UTC offset
    start: str
    # The source's repeat interval in seconds
    cycle: float
    # The playing livestreams, at most 200 different ones; the same twice counts once
    services: list[Service]


class DataEvent(_RequiredDataEvent, total=False):
    """Radiotext, dynamic label and related data. Further fields are carried through."""

    # Inserted by the service as a string-formatted number; one sent by a publisher is replaced. Do not assume digits
    # only.
    id: str


HubEvent = Union[TrackEvent, ControlEvent, DataEvent]


Kind = Literal["playing", "next", "control", "data"]


class _EventKind(NamedTuple):
    """What the name of an event says. Fields: those with the event time, with the name of a state, and with its end."""

    kind: Kind
    event_class: str
    time_field: str
    slot_field: str | None
    end_field: str | None


_KINDS: dict[str, _EventKind] = {
    "de.org.hub.v1.radio.track.playing": _EventKind("playing", "track", "start", None, None),
    "de.org.hub.v1.radio.track.next": _EventKind("next", "track", "start", None, None),
    "de.org.hub.v1.radio.control": _EventKind("control", "control", "time", "name", "validUntil"),
    "de.org.hub.v1.radio.data": _EventKind("data", "data", "start", None, None),
}


@dataclass(frozen=True)
class _Tracks:
    playing: Track | None = None
    next: Track | None = None


# </made by `npm run docs` from event/kinds/>


class Remark(TypedDict):
    """A mistake in an event, or something that a publisher should know about it."""

    path: str
    message: str
    errorCode: str


class Statuses(TypedDict):
    """Numbers of services by outcome."""

    published: int
    blocked: int
    failed: int


class _EveryReport(TypedDict):
    outcome: Literal["published", "blocked", "invalid", "failed"]
    statuses: Statuses
    event: str | None
    id: str | None
    playlistItemId: str | None
    name: str | None
    eventTime: str | None
    services: list[str]
    errors: list[Remark]
    receivedAt: str
    payloadHash: str


class Report(_EveryReport, total=False):
    """What the hub says about one event (docs/publishers.md, "Feedback"). `warnings` is absent where it has none."""

    warnings: list[Remark]
    clientId: str | None
    dryRun: Literal[True]


class Unknown(TypedDict):
    """The hub has the event, and no report came, also when the event was sent once more."""

    outcome: Literal["unknown"]
    acknowledged: Literal[True]


Result = Union[Report, Unknown]


@dataclass(frozen=True)
class Restored:
    """An event of an earlier process that was still in the outbox, and what becomes of it now."""

    event: dict[str, Any]
    result: Future[Result]


# --- Publishing over MQTT ---------------------------------------------------------------------------------------------

_MAX_UNREPORTED = 500
"""Publishes without a report. More wait."""
_MAX_WAITING_EVENTS = 20_000
_MAX_WAITING_BYTES = 64 * 1024 * 1024
_MAX_SETTLED = 1_000
"""How many settled events are remembered, to swallow further reports about them."""
_LONGEST_WAIT = 55 * 60
"""How long an event is worth sending. The hub knows a repeated event again for an hour."""
_SWEEP = 60
"""How often events are looked for that have waited too long."""
_MAX_PAYLOAD = 409_600
"""Payload limit of the hub, bytes. Over MQTT it closes the connection at what is much larger."""


def connect_publisher(
    *,
    url: str,
    username: str,
    password: str,
    institution: str,
    ca: str | None = None,
    outbox: str | os.PathLike[str] | None = None,
    report_timeout: float = 30,
    on_problem: Callable[[ClientError], object] | None = None,
    on_connected: Callable[[], object] | None = None,
) -> Publisher:
    """
    Publishes events of one institution over MQTT, and tells what the hub decided about each.

    Returns at once, and connects behind the scenes. Raises `ClientError` for a wrong option or an unusable outbox.

    url: `mqtts://host:8883`, or `wss://host:8443/mqtt`.
    ca: CA to trust instead of those of the system: PEM text, or the path of a PEM file.
    institution: the institution that the events belong to, `urn:org:institution:…`.
    outbox: path of a file that keeps events until the hub has answered, also over the end of the process.
    report_timeout: how long a report may take after the acknowledgement.
    on_problem: told whenever there is no connection (`connection.lost`), the hub refuses it or an event that nobody waits for
        (`event.refused`), or the outbox was damaged; the same again at most once a minute. Default: a warning of the logger
        `now_playing_hub`.
    on_connected: told when there is a connection again, after a problem with it. Default: a warning of the same logger, unless
        `on_problem` is given.
    """
    for name, value in {"username": username, "password": password, "institution": institution}.items():
        _check_text(name, value)
    if re.search(r"[/+#\s]", institution):
        raise _wrong("institution", "must be urn:org:institution:…")
    if not _is_number(report_timeout) or not 0 < report_timeout < 2**31:
        raise _wrong("report_timeout", "must be seconds above 0")
    address = _address_of(url, ("mqtts", "wss"), _tls_context(ca))
    if on_connected is None:
        on_connected = (lambda: None) if on_problem else (lambda: _log.warning("%s: connected again", url))
    return Publisher(
        address, username, password, institution, outbox, report_timeout, on_problem or _warn, on_connected
    )


class Publisher:
    """See `connect_publisher`. All of it may be used from any thread. In a `with` statement it closes itself."""

    def __init__(
        self,
        address: _Address,
        username: str,
        password: str,
        institution: str,
        outbox: str | os.PathLike[str] | None,
        report_timeout: float,
        on_problem: Callable[[ClientError], object],
        on_connected: Callable[[], object],
    ) -> None:
        _need_paho()
        self._report_timeout = report_timeout
        self._on_problem = on_problem
        self._on_connected = on_connected
        self._telling = _Telling(on_problem)
        self._inbox = f"inbox/{institution}"
        self._outbox = _Outbox(outbox) if outbox is not None else None
        self._client_id = self._outbox.client_id if self._outbox else _new_client_id()
        # All that is not settled, in the order of `publish`; of these, what has not been sent yet.
        self._items: dict[_Item, None] = {}
        self._queue: dict[_Item, None] = {}
        # What has been sent, by key. Of equal events the first one gets the first report.
        self._sent: dict[str, list[_Item]] = {}
        # Settled events, by key, with the number of further reports that may come.
        self._settled: OrderedDict[str, int] = OrderedDict()
        self._newest_first = _NewestFirst()
        # Events that must be on the disk before they are sent.
        self._unsynced: list[_Item] = []
        self._bytes = 0
        self._unreported = 0
        self._link: _Link | None = None
        self._refusal: ClientError | None = None
        self._closing: Future[list[dict[str, Any]]] | None = None
        self._has_ended = False
        self._idle: Callable[[], None] | None = None
        self._loop = _Loop("now-playing-hub publisher")
        # Nobody asks for the outcome of these events.
        self._unheard: set[_Item] = set()
        self._restored: tuple[Restored, ...] = tuple(
            self._restore(*one) for one in (self._outbox.restored if self._outbox else ())
        )
        self._connection = _Connection(self._loop, address, username, password, self, f"feedback/{institution}")
        self._loop.soon(self._begin)

    @property
    def restored(self) -> tuple[Restored, ...]:
        """The events that were in the outbox at the beginning. Who looks at them hears by `result` what the hub refuses."""
        self._unheard = set()
        return self._restored

    def publish(self, event: Mapping[str, Any], timeout: float | None = None) -> Result:
        """
        Sends an event, and returns its report when the hub has published it. `warnings` says what is probably wrong.

        Raises `EventRefused` or `ClientError`. Raises `TimeoutError` when nobody knows after `timeout` seconds: the event
        is still on its way then. Publish it again unchanged within an hour, and the hub takes both as one.
        """
        return self._loop.wait(self.submit(event), timeout)

    def check(self, event: Mapping[str, Any], timeout: float | None = None) -> Result:
        """Asks the hub what it would do with an event. Returns and raises like `publish`; nothing is published."""
        return self._loop.wait(self._submit(event, True), timeout)

    def submit(self, event: Mapping[str, Any]) -> Future[Result]:
        """Sends an event without waiting. The future ends as `publish` does."""
        return self._submit(event, False)

    def close(self, wait: float = 10) -> list[dict[str, Any]]:
        """
        Takes no more events, waits at most `wait` seconds for the answers of the hub, and disconnects.

        Returns what is not settled then; its `publish` raises `ClientError` with the code `closed`. It stays in the outbox.
        """
        if self._closing is None:
            self._closing = _running_future()
            self._loop.soon(self._close, wait, self._closing)
        return self._loop.wait_for_end(self._closing)

    def __enter__(self) -> Publisher:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _submit(self, event: Mapping[str, Any], dry_run: bool) -> Future[Result]:
        if self._closing is not None:
            raise ClientError("closed")
        payload = _write_event(event)
        item = _Item(payload, self._inbox + ("/check" if dry_run else ""), _key_of(payload, dry_run))
        self._loop.soon(self._take, item)
        return item.future

    # What follows runs on the thread of the loop.

    def _begin(self) -> None:
        if self._outbox and self._outbox.damaged:
            _guarded(self._on_problem, ClientError("outbox.damaged", f"{self._outbox.path}: {self._outbox.damaged} lines"))
        self._loop.later(_SWEEP, self._sweep)
        self._connection.attempt()

    def _restore(self, number: int, payload: str, age: float) -> Restored:
        data = payload.encode()
        item = _Item(data, self._inbox, _key_of(data, False), number=number)
        item.since -= age
        item.at -= age
        self._unheard.add(item)
        self._add(item)
        self._queue[item] = None
        return Restored(json.loads(payload), item.future)

    def _add(self, item: _Item) -> None:
        self._items[item] = None
        self._bytes += len(item.payload)
        if self._is_publish(item):
            self._newest_first.add(item)

    def _is_publish(self, item: _Item) -> bool:
        return item.topic == self._inbox

    def _take(self, item: _Item) -> None:
        dry_run = not self._is_publish(item)
        if self._has_ended:
            item.future.set_exception(ClientError("closed"))
        elif self._refusal and (dry_run or not self._outbox):
            item.future.set_exception(self._refusal)
        elif len(self._items) >= _MAX_WAITING_EVENTS or self._bytes + len(item.payload) > _MAX_WAITING_BYTES:
            item.future.set_exception(ClientError("full"))
        elif self._outbox and not dry_run:
            self._add(item)
            # Whatever comes in the same turn is synced with it.
            if not self._unsynced:
                self._loop.soon(self._sync)
            self._unsynced.append(item)
        else:
            self._add(item)
            self._queue[item] = None
            self._send_waiting()

    def _sync(self) -> None:
        """The events are on the disk before they are sent."""
        items, self._unsynced = self._unsynced, []
        try:
            numbers = self._outbox.add([item.payload.decode() for item in items]) if self._outbox else []
        except ClientError as error:
            for item in items:
                self._forget(item)
                _fail(item.future, error)
            return
        for item, number in zip(items, numbers):
            item.number = number
            # It may have been given up meanwhile.
            if item not in self._items:
                continue
            if not self._newest_first.is_held(item):
                self._queue[item] = None
            if self._refusal:
                self._unheard.add(item)
                _fail(item.future, self._refusal)
        self._send_waiting()

    def _send_waiting(self) -> None:
        while self._link and self._queue and self._unreported < _MAX_UNREPORTED:
            item = next(iter(self._queue))
            del self._queue[item]
            self._unreported += 1
            self._sent.setdefault(item.key, []).append(item)
            self._send(item)

    def _send(self, item: _Item) -> None:
        item.sends += 1
        item.report = None
        if self._link:
            # If the connection is lost first, the event is sent again on the next one.
            self._link.publish(item.topic, item.payload, lambda: self._acknowledged(item))

    def _acknowledged(self, item: _Item) -> None:
        self._connection.proved()
        if item not in self._items or item.is_acknowledged:
            return
        item.is_acknowledged = True
        if item.report:
            self._settle(item, item.report)
        else:
            item.timer = self._loop.later(self._report_timeout, self._report_missed, item)

    def _received(self, payload: bytes, is_repeated: bool) -> None:
        report = _read_report(payload)
        if report is None or ("clientId" in report and report["clientId"] != self._client_id):
            return
        key = report["payloadHash"] + (" dry run" if report.get("dryRun") is True else "")
        item = next((each for each in self._sent.get(key, ()) if each.report is None), None)
        if self._is_of_settled(key, is_repeated, item) or item is None:
            return
        item.report = report
        item.reports += 1
        if item.is_acknowledged:
            self._settle(item, report)

    def _is_of_settled(self, key: str, is_repeated: bool, item: _Item | None) -> bool:
        """Whether a report is about an earlier, equal event: that one was sent more than once, and is settled."""
        further = self._settled.get(key)
        if further is None:
            return False
        if further == 0:
            return is_repeated and not (item and item.is_acknowledged)
        self._settled[key] = further - 1
        return True

    def _report_missed(self, item: _Item) -> None:
        """The report may have gone to a lost connection, and is not retained. An event that is sent once more keeps its id."""
        item.stop()
        if item.is_sent_again or item.is_too_old():
            self._forget(item)
            _succeed(item.future, {"outcome": "unknown", "acknowledged": True})
            return
        item.is_sent_again = True
        item.is_acknowledged = False
        if self._link:
            self._send(item)

    def _settle(self, item: _Item, report: Report) -> None:
        self._settled[item.key] = self._settled.pop(item.key, 0) + item.sends - item.reports
        while len(self._settled) > _MAX_SETTLED:
            self._settled.popitem(last=False)
        if report["outcome"] == "published":
            # Before the newer one is settled: after a kill between the two, only the newer one is sent again.
            for older in self._newest_first.published(item):
                name = _name_of(item.payload)
                self._drop(older, f"newer: an event with {name} is published for all its livestreams")
        is_unheard = item in self._unheard
        self._forget(item)
        if report["outcome"] == "published":
            _succeed(item.future, report)
            return
        refused = EventRefused(report["outcome"], report["errors"])
        _fail(item.future, refused)
        if is_unheard:
            problem = ClientError("event.refused", f"{_name_of(item.payload)}: {refused}")
            problem.__cause__ = refused
            _guarded(self._on_problem, problem)

    def _forget(self, item: _Item) -> None:
        item.stop()
        if item not in self._items:
            return
        del self._items[item]
        self._unheard.discard(item)
        self._queue.pop(item, None)
        self._bytes -= len(item.payload)
        if item.number is not None and self._outbox:
            self._outbox.settled(item.number)
        self._take_back(item)
        for due in self._newest_first.left(item):
            # What is not on the disk yet follows by itself.
            if due.number is not None:
                self._queue[due] = None
        self._send_waiting()
        if not self._items and self._idle:
            self._idle()

    def _take_back(self, item: _Item) -> None:
        """It is no longer one that the hub has to answer."""
        equal = self._sent.get(item.key, [])
        if item not in equal:
            return
        self._unreported -= 1
        if len(equal) > 1:
            equal.remove(item)
        else:
            del self._sent[item.key]

    def _sweep(self) -> None:
        self._loop.later(_SWEEP, self._sweep)
        self._drop_too_old()

    def _drop_too_old(self) -> None:
        for item in [item for item in self._items if item.is_too_old()]:
            if item.is_acknowledged or item.is_sent_again:
                self._report_missed(item)
            else:
                self._drop(item, "too old: it has waited for 55 minutes")

    def _drop_ended(self) -> None:
        now = time.time()
        for item in [item for item in self._items if self._is_publish(item) and not item.is_acknowledged]:
            end = _end_of(item.payload, now)
            if end is not None:
                self._drop(item, f"expired: validUntil {end} has passed")

    def _drop(self, item: _Item, why: str) -> None:
        self._forget(item)
        _fail(item.future, ClientError("superseded", why))

    def _ready(self, link: _Link, is_resumed: bool) -> None:
        if self._telling.connected():
            _guarded(self._on_connected)
        self._refusal = None
        self._drop_too_old()
        if self._outbox:
            self._drop_ended()
            for item in self._newest_first.hold(filter(self._is_publish, self._items)):
                self._queue.pop(item, None)
                self._take_back(item)
        self._link = link
        for item in list(self._items):
            if item.is_acknowledged:
                # A session that the hub did not keep: the report went to nobody.
                if not is_resumed:
                    self._report_missed(item)
            elif item.sends > 0 and item not in self._queue and not self._newest_first.is_held(item):
                self._send(item)
        self._send_waiting()

    def _lost(self, problem: ClientError) -> None:
        self._link = None
        self._telling.tell(problem)

    def _refused(self, problem: ClientError) -> None:
        self._link = None
        self._refusal = problem
        for item in list(self._items):
            _fail(item.future, problem)
            # What is in the outbox goes out if a later log-in succeeds.
            if item.number is None and item not in self._unsynced:
                self._forget(item)
            else:
                self._unheard.add(item)
        self._telling.tell(problem)
        if self._idle:
            self._idle()

    def _renamed(self, client_id: str) -> None:
        self._client_id = client_id
        if self._outbox:
            try:
                self._outbox.rename(client_id)
            except ClientError as error:
                _guarded(self._on_problem, error)

    def _close(self, wait: float, done: Future[list[dict[str, Any]]]) -> None:
        def end() -> None:
            self._idle = None
            self._has_ended = True
            timer.cancel()
            unsettled = list(self._items)
            self._items.clear()
            self._queue.clear()
            for item in unsettled:
                item.stop()
                _fail(item.future, ClientError("closed"))
            self._connection.end()
            if self._outbox:
                self._outbox.close()
            self._loop.stop()
            done.set_result([json.loads(item.payload) for item in unsettled])

        timer = self._loop.later(wait, end)
        if not self._items or self._refusal:
            end()
        else:
            self._idle = lambda: self._loop.soon(end) if self._idle else None


@dataclass(eq=False)
class _Item:
    """An event that is not settled."""

    payload: bytes
    topic: str
    key: str
    """Payload hash, and whether it is a dry run: what a report is matched by."""
    number: int | None = None
    """Its number in the outbox."""
    future: Future[Result] = field(default_factory=lambda: _running_future())
    since: float = field(default_factory=time.monotonic)
    """When it was published, by the monotonic clock."""
    at: float = field(default_factory=time.time)
    """The same by the clock of the machine."""
    sends: int = 0
    reports: int = 0
    report: Report | None = None
    is_acknowledged: bool = False
    is_sent_again: bool = False
    """It was acknowledged, no report came, and it was sent once more."""
    timer: asyncio.TimerHandle | None = None

    def is_too_old(self) -> bool:
        """By either clock: the monotonic one stands still while the machine sleeps, the other one may be set back."""
        return max(time.monotonic() - self.since, time.time() - self.at) > _LONGEST_WAIT

    def stop(self) -> None:
        if self.timer:
            self.timer.cancel()


def _key_of(payload: bytes, dry_run: bool) -> str:
    return hashlib.sha256(payload).hexdigest()[:16] + (" dry run" if dry_run else "")


def _write_event(event: Mapping[str, Any]) -> bytes:
    """The payload of an event. Raises `ClientError` or, where the hub would, `EventRefused`."""
    if not isinstance(event, Mapping):
        raise ClientError("event.unreadable", "the event must be a dict")
    try:
        text = json.dumps(dict(event), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        payload = text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ClientError("event.unreadable", f"the event is no object that JSON can carry: {error}") from error
    if len(payload) > _MAX_PAYLOAD:
        raise EventRefused("invalid", [_too_large()])
    return payload


def _too_large() -> Remark:
    return {"path": ".", "message": f"must have at most {_MAX_PAYLOAD} bytes", "errorCode": "payload.size"}


def _read_report(payload: bytes) -> Report | None:
    """None: it is no report, or lacks what it is matched and judged by."""
    value = _json_in(payload)
    if not isinstance(value, dict) or value.get("outcome") not in ("published", "blocked", "invalid", "failed"):
        return None
    remarks = (value.get("errors"), value.get("warnings", []))
    are_remarks = all(isinstance(list_, list) and all(map(_is_remark, list_)) for list_ in remarks)
    return value if are_remarks and isinstance(value.get("payloadHash"), str) else None  # type: ignore[return-value]


def _is_remark(value: object) -> bool:
    return all(isinstance(_get(value, name), str) for name in ("path", "message", "errorCode"))


class _Track(NamedTuple):
    """A track event, as far as it can be judged here: its time, and the livestreams for which no newer one is published."""

    time: float
    slots: set[str]


class _NewestFirst:
    """
    After an outage the newest track events are sent first. An older one is held until a newer one is published for each of
    its livestreams: then it is superseded. If the hub refuses the newer one, the older one is due after all.
    """

    def __init__(self) -> None:
        # What waits, by slot, in the order in which it was published. All of this is empty while nothing is held.
        self._lines: dict[str, list[_Item]] = {}
        self._tracks: dict[_Item, _Track] = {}
        self._held: dict[_Item, None] = {}

    def is_held(self, item: _Item) -> bool:
        return item in self._held

    def hold(self, items: Iterable[_Item]) -> list[_Item]:
        """Holds what is older, and returns it. `items`: all that wait, in the order in which they were published."""
        self._lines.clear()
        self._held.clear()
        for item in items:
            self._enter(item)
            track = self._tracks.get(item)
            if track and track.slots and not item.is_acknowledged and not item.is_sent_again:
                self._held[item] = None
        for line in self._lines.values():
            newest = float("-inf")
            # Of two with the same time the later one counts.
            for item in reversed(line):
                if self._tracks[item].time > newest:
                    self._held.pop(item, None)
                    newest = self._tracks[item].time
        self._end_if_idle()
        return list(self._held)

    def add(self, item: _Item) -> None:
        """An event was published behind all others: what is held may be older."""
        if self._held:
            self._enter(item)

    def published(self, item: _Item) -> list[_Item]:
        """The hub has published an event. Returns what is superseded by that."""
        superseded: list[_Item] = []
        track = self._tracks.get(item)
        for slot in track.slots if track else ():
            line = self._lines[slot]
            place = line.index(item)
            outrun = [older for older in line[:place] if track and self._tracks[older].time <= track.time]
            for older in outrun:
                self._tracks[older].slots.remove(slot)
                if not self._tracks[older].slots and older in self._held:
                    superseded.append(older)
            gone = set(outrun)
            self._lines[slot] = [one for one in line if one not in gone]
        return superseded

    def left(self, item: _Item) -> list[_Item]:
        """An event waits no longer, whatever became of it. Returns what is due for that reason."""
        if not self._held:
            return []
        track = self._tracks.get(item)
        due = [older for slot in (track.slots if track else ()) for older in self._leave(self._lines[slot], item)]
        self._tracks.pop(item, None)
        self._held.pop(item, None)
        self._end_if_idle()
        return due

    def _enter(self, item: _Item) -> None:
        track = self._tracks.get(item) or _judged_track(item.payload)
        if track:
            self._tracks[item] = track
            for slot in track.slots:
                self._lines.setdefault(slot, []).append(item)

    def _leave(self, line: list[_Item], item: _Item) -> list[_Item]:
        """Removes an event, and returns what it alone stood behind."""
        due: list[_Item] = []
        place = line.index(item)
        newest = max((self._tracks[later].time for later in line[place + 1 :]), default=float("-inf"))
        del line[place]
        for older in reversed(line[:place]):
            # What is newer than this one was not held by it.
            if newest >= self._tracks[item].time:
                break
            if self._tracks[older].time > newest:
                newest = self._tracks[older].time
                if older in self._held:
                    del self._held[older]
                    due.append(older)
        return due

    def _end_if_idle(self) -> None:
        if not self._held:
            self._lines.clear()
            self._tracks.clear()


def _judged_track(payload: bytes) -> _Track | None:
    """None: the event is no track, or cannot be judged here. Then it is sent, and the hub decides."""
    event = _json_in(payload)
    row = _kind_of(event)
    if not isinstance(event, dict) or row is None or row.event_class != "track":
        return None
    start = _parse_instant(event.get(row.time_field))
    services = event.get("services")
    if start is None or not isinstance(services, list) or not services:
        return None
    names = ([_get(service, name) for name in _NAMES_OF_LIVESTREAMS] for service in services)
    return _Track(start, {json.dumps([row.kind, *each]) for each in names})


# Services that name their livestream in different ways count as different: then the event is sent.
_NAMES_OF_LIVESTREAMS = ("id", "externalId", "publisherId")


def _end_of(payload: bytes, now: float) -> str | None:
    """When a control state ended (`validUntil`), as its event writes it. None: it has not ended, or the hub must judge."""
    event = _json_in(payload)
    row = _kind_of(event)
    end = _get(event, row.end_field) if row and row.end_field else None
    until = _parse_instant(end)
    return end if until is not None and until <= now else None


def _name_of(payload: bytes) -> str:
    """What a person knows an event by: its `playlistItemId`, else its time."""
    event = _json_in(payload)
    row = _kind_of(event)
    field = "playlistItemId" if _get(event, "playlistItemId") else row.time_field if row else "start"
    return f"{field} {json.dumps(_get(event, field), ensure_ascii=False)[:100]}"


def _get(value: object, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


# --- The outbox -------------------------------------------------------------------------------------------------------

_COMPACT_AT = 1024 * 1024
"""The file is written anew when it has at least so many characters, and more than twice what is still needed."""


class _Outbox:
    """
    The file that keeps events until they are settled, as the JavaScript library writes it.

    It has a line of JSON each: first the client id, then events with a number, and the numbers of those that are settled.
    It grows at its end and is replaced as a whole. A kill can only tear its last line.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.realpath(path)
        with self._guard():
            self._release = _take_lock(self.path)
        try:
            self._open()
        except BaseException:
            self._release()
            raise

    def _open(self) -> None:
        with self._guard():
            self._read()
            self._file: Any = None
            try:
                self._replace()
            except OSError as error:
                # On a full disk, what is in the file goes out all the same. The next write tries again.
                if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) or not self._kept:
                    raise
        self._last = len(self._kept)
        now = time.time() * 1000
        # After the clock was set back, `at` may lie ahead. The event then counts as that old: it must not wait for ever.
        self.restored = [(number, payload, abs(now - at) / 1000) for number, (payload, at) in self._kept.items()]

    def add(self, payloads: Sequence[str]) -> list[int]:
        """Keeps events. Returns their numbers when they are on the disk. Raises `ClientError`."""
        numbers = []
        lines = []
        for payload in payloads:
            self._last += 1
            numbers.append(self._last)
            self._kept[self._last] = (payload, int(time.time() * 1000))
            lines.append(_event_line(self._last, *self._kept[self._last]))
        try:
            self._append("".join(lines), sync=True)
        except ClientError:
            for number in numbers:
                del self._kept[number]
            raise
        return numbers

    def settled(self, number: int) -> None:
        """The event needs not be kept any more. If this is lost, it is sent again, which does no harm."""
        if self._kept.pop(number, None) is None:
            return
        try:
            self._append(json.dumps({"settled": number}) + "\n", sync=False)
        except ClientError:
            pass  # `add` tells whoever relies on the file

    def rename(self, client_id: str) -> None:
        self.client_id = client_id
        with self._guard():
            self._replace()

    def close(self) -> None:
        if self._file:
            self._file.close()
        self._release()

    def _append(self, text: str, sync: bool) -> None:
        with self._guard():
            try:
                if self._file is None or self._is_wasteful():
                    self._replace()
                    return
                self._file.write(text)
                self._file.flush()
                self._size += len(text)
                if sync:
                    os.fsync(self._file.fileno())
            except OSError:
                # The last line may be torn: the next write makes the file anew.
                self._drop_file()
                raise

    def _drop_file(self) -> None:
        file, self._file = self._file, None
        if file:
            try:
                file.close()
            except OSError:
                pass  # what it could not write is written anew

    def _is_wasteful(self) -> bool:
        return self._size >= _COMPACT_AT and self._size > 2 * sum(len(payload) for payload, _ in self._kept.values())

    def _replace(self) -> None:
        """Puts a new file in the place of the old one, all of it or nothing."""
        self._drop_file()
        text = json.dumps({"outbox": 1, "clientId": self.client_id}) + "\n"
        text += "".join(_event_line(number, *kept) for number, kept in self._kept.items())
        following = f"{self.path}.new"
        # In a folder where others may write, it may be theirs, or a link.
        _remove(following)
        descriptor = os.open(following, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with open(descriptor, "w", encoding="utf-8", newline="") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            # On a full disk, the half that is written takes the room that others need.
            _remove(following)
            raise
        os.replace(following, self.path)
        directory = os.open(os.path.dirname(self.path), os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
        self._file = open(self.path, "a", encoding="utf-8", newline="")
        self._size = len(text)

    def _read(self) -> None:
        self._kept: dict[int, tuple[str, float]] = {}
        kept: dict[Any, tuple[str, float]] = {}
        self.damaged = 0
        self.client_id = _new_client_id()
        try:
            with open(self.path, "rb") as file:
                content = file.read()
        except FileNotFoundError:
            return
        if content == b"":
            return
        # What stands behind the last line end is a line that was torn.
        head, *lines = content.split(b"\n")[:-1] or [b""]
        first = _json_in(head)
        if _get(first, "outbox") != 1 or not isinstance(_get(first, "clientId"), str):
            raise ClientError("outbox.unusable", f"{self.path} is no outbox: nothing was changed")
        self.client_id = _get(first, "clientId")
        for line in lines:
            value = _json_in(line)
            number, at, payload = (_get(value, name) for name in ("number", "at", "payload"))
            if _is_number(_get(value, "settled")):
                kept.pop(_get(value, "settled"), None)
            elif _is_number(number) and _is_number(at) and isinstance(payload, str) and _is_event(payload):
                kept[number] = (payload, at)
            else:
                self.damaged += 1
        # Numbered anew: in a damaged file a number may be too large to count on from.
        self._kept.update(enumerate(kept.values(), 1))

    def _guard(self) -> _Guard:
        return _Guard(self.path)


class _Guard:
    """Turns an error of the file system into a `ClientError`."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, _type: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, OSError):
            raise ClientError("outbox.unusable", f"{self._path}: {error}") from error


def _event_line(number: int, payload: str, at: float) -> str:
    return json.dumps({"number": number, "at": at, "payload": payload}, ensure_ascii=False) + "\n"


def _is_event(payload: str) -> bool:
    try:
        payload.encode()
    except UnicodeEncodeError:
        return False
    event = _json_in(payload)
    return isinstance(event, dict) and "event" in event


_held: set[str] = set()
"""The locks of this process. Its own lock file says nothing about a second client in the same process."""
_held_lock = threading.Lock()


def _take_lock(path: str) -> Callable[[], None]:
    """
    Takes the lock of a file for this process, as the JavaScript library does. Returns what gives it back.

    Each process has a lock file of its own, with its process id in the name. It makes the file, and then looks for files
    of others: of two that start together at least one sees the other, and the file of a dead process can be removed
    without a race. The process must be one of the same machine and the same container.
    """
    if os.name != "posix":
        # `os.kill` would end the other process there.
        raise ClientError("outbox.unusable", "an outbox needs Linux, macOS or another system of this family")
    with _held_lock:
        if path in _held:
            raise ClientError("outbox.locked", f"{path} is in use by this process")
        own = f"{path}.lock-{os.getpid()}"
        start = _start_of("self")
        try:
            descriptor = os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            # Of another copy of this library in this process, of a dead process that had this process id, or of somebody else.
            if start and _text_of(own) == start:
                raise ClientError("outbox.locked", f"{path} is in use by this process") from None
            _remove(own)
            descriptor = os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(start)
        prefix = f"{path}.lock-"
        with os.scandir(os.path.dirname(path)) as entries:
            others = [entry.path for entry in entries]
        for other in others:
            if other == own or not other.startswith(prefix) or not re.fullmatch("[1-9][0-9]*", other[len(prefix) :]):
                continue
            if _is_holder(int(other[len(prefix) :]), other):
                _remove(own)
                raise ClientError("outbox.locked", f"{path} is in use by process {other[len(prefix):]}")
            _remove(other)
        _held.add(path)

    def release() -> None:
        with _held_lock:
            _held.discard(path)
            _remove(own)

    return release


def _remove(path: str) -> None:
    try:
        os.remove(path)
    except FileNotFoundError:
        pass


def _is_holder(pid: int, file: str) -> bool:
    """Whether the process that wrote the lock file still runs."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # it runs, and belongs to another user
    written, now = _text_of(file), _start_of(str(pid))
    # Another process may have the process id by now. An empty file was made this moment.
    return written == "" or now == "" or written == now


def _start_of(pid: str) -> str:
    """When a process started, as Linux tells. Empty where nobody tells."""
    # The name of the program, in brackets, may hold spaces. The start is the 20th field behind it.
    fields = _text_of(f"/proc/{pid}/stat").rpartition(")")[2].split()
    boot = _text_of("/proc/sys/kernel/random/boot_id").strip()
    return f"{boot} {fields[19]}" if len(fields) > 19 else ""


def _text_of(path: str) -> str:
    try:
        # To read a queue might take for ever.
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return ""
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


# --- Reading what is on air -------------------------------------------------------------------------------------------

State = Literal["connecting", "live", "lost", "refused"]

_LISTENERS = (*(row.kind for row in _KINDS.values()), "changed", "state")
_NONE_GRANTED = "the credential permits none of the filters"


@dataclass(frozen=True)
class Message:
    """An event of one livestream."""

    kind: Kind
    livestream_id: str
    event: dict[str, Any]
    """A `TrackEvent`, `ControlEvent` or `DataEvent`, by `kind`."""
    retained: bool
    """It was the newest already when the connection was made. Not: it is old."""
    dropped: int = 0
    """How many messages fell out before it, because the iteration was too slow."""


def connect_subscriber(
    *,
    url: str,
    filters: Sequence[str],
    username: str | None = None,
    password: str = "",
    ca: str | None = None,
    on: Mapping[str, Callable[..., object]] | None = None,
    on_problem: Callable[[ClientError], object] | None = None,
) -> Subscriber:
    """
    Reads what is on air, over lost connections and refusals.

    Returns at once, and connects behind the scenes. Raises `ClientError` for a wrong option.

    url: `mqtts://host:8883`, `wss://host:8443/mqtt`, or `https://host:8443`, which is read over WebSocket.
    filters: topic filters, such as `radio/+/track/playing` (docs/subscribers.md).
    username: None if the node has a public page, which gives everybody a credential for an hour. `url` is then https or wss.
    ca: CA to trust instead of those of the system: PEM text, or the path of a PEM file.
    on: listeners from the first message on, as `Subscriber.on` takes them. With it, iterations get what comes after they
        began; without it, the first one gets everything.
    on_problem: told of denied filters (`filter.denied`), of a lost connection (`connection.lost`: the next attempt follows
        by itself), and of the end (`login.refused`). Default: a warning of the logger `now_playing_hub`.
    """
    schemes = ("mqtts", "wss", "https")
    context = _tls_context(ca)
    address = _address_of(url, schemes, context)
    if username is None and url.startswith("mqtts"):
        raise _wrong("username", "is missing: without one, url must begin with https:// or wss://")
    if username is not None:
        _check_text("username", username)
        if not isinstance(password, str):
            raise _wrong("password", "must be a text")
    is_list = isinstance(filters, Sequence) and not isinstance(filters, (str, bytes)) and len(filters) > 0
    if not is_list or not all(isinstance(one, str) and _FILTER.fullmatch(one) for one in filters):
        raise _wrong("filters", "must be a list of topic filters, such as radio/+/track/playing")
    for name in on or ():
        _check_listener(name)
    logins: _GivenLogin | _HourlyLogins
    if username is not None:
        logins = _GivenLogin(username, password)
    else:
        logins = _HourlyLogins(f"https://{urllib.parse.urlsplit(url).netloc}", _Http(ca))
    return Subscriber(address, list(dict.fromkeys(filters)), logins, on, on_problem or _warn)


# MQTT 3.1.1 §4.7.1: a wildcard fills its level, and # is the last one.
_FILTER = re.compile(r"(?=.)(?:(?:\+|[^/+#]*)/)*(?:#|\+|[^/+#]*)", re.DOTALL)


class Subscriber:
    """
    See `connect_subscriber`. `for message in subscriber` yields `Message`s until `close`, and raises the `ClientError`
    after which nothing more comes. In a `with` statement it closes itself.
    """

    def __init__(
        self,
        address: _Address,
        filters: list[str],
        logins: _GivenLogin | _HourlyLogins,
        on: Mapping[str, Callable[..., object]] | None,
        on_problem: Callable[[ClientError], object],
    ) -> None:
        _need_paho()
        self._address = address
        self._on_problem = on_problem
        self._telling = _Telling(on_problem)
        self._listeners: dict[str, tuple[Callable[..., object], ...]] = {
            name: (listener,) for name, listener in (on or {}).items()
        }
        self._changing = threading.Lock()
        self._first = None if on else _MessageQueue()
        self._queues: tuple[_MessageQueue, ...] = (self._first,) if self._first else ()
        self._end: tuple[ClientError | None] | None = None
        self._state: State = "connecting"
        self._loop = _Loop("now-playing-hub subscriber")
        self.now_playing = NowPlayingOfAll(self._loop, self._changed, self._livestreams_full)
        """What each livestream shows now, by its id."""
        self._connection = _Subscription(self._loop, address, filters, logins, self)
        self._loop.soon(self._connection.begin)

    @property
    def state(self) -> State:
        """`connecting`, `live`, `lost` (the next attempt follows by itself), or `refused` (only a person can help)."""
        return self._state

    def on(self, name: str, listener: Callable[..., object]) -> Callable[[], None]:
        """
        Calls the listener for each, on the thread of the subscriber: a `Kind` such as `playing` with a `Message`; `changed`
        with livestream id and `NowPlaying`, also at `validUntil` of a control state; `state` with the new state. The
        returned function ends that.
        """
        _check_listener(name)
        with self._changing:
            self._listeners = {**self._listeners, name: (*self._listeners.get(name, ()), listener)}

        def end() -> None:
            with self._changing:
                rest = tuple(one for one in self._listeners.get(name, ()) if one is not listener)
                self._listeners = {**self._listeners, name: rest}

        return end

    def __iter__(self) -> Iterator[Message]:
        with self._changing:
            queue, self._first = self._first or _MessageQueue(), None
            if queue not in self._queues:
                self._queues = (*self._queues, queue)
            if self._end:
                queue.end(*self._end)
        return self._iterate(queue)

    def _iterate(self, queue: _MessageQueue) -> Iterator[Message]:
        try:
            while (message := queue.next()) is not None:
                yield message
        finally:
            with self._changing:
                self._queues = tuple(one for one in self._queues if one is not queue)

    def close(self) -> None:
        """Ends the connection, and all iterations."""
        done = _running_future()

        def end() -> None:
            self._finish(None)
            self._connection.close()
            self._loop.stop()
            done.set_result(None)

        try:
            self._loop.soon(end)
        except ClientError:
            return  # it was closed before
        self._loop.wait_for_end(done)

    def __enter__(self) -> Subscriber:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # What follows runs on the thread of the loop.

    def _received(self, topic: str, payload: bytes, retained: bool) -> None:
        livestream_id = (topic.split("/") + [""])[1]
        event = _json_in(payload)
        row = _kind_of(event)
        # Kinds that are newer than this file are left out (docs/subscribers.md, "What arrives").
        if row is None or not isinstance(event, dict):
            return
        message = Message(row.kind, livestream_id, event, retained)
        self.now_playing._take(livestream_id, event)
        # Control states with different names live side by side on one topic.
        key = f"{topic} {event.get(row.slot_field) if row.slot_field else ''}"
        for queue in self._queues:
            queue.push(key, message, len(payload))
        self._emit(row.kind, message)

    def _changed(self, livestream_id: str, shown: NowPlaying) -> None:
        self._emit("changed", livestream_id, shown)

    def _livestreams_full(self) -> None:
        problem = ClientError("livestreams.full", f"{self._address.url}: {ERROR_CODES['livestreams.full']}")
        _guarded(self._on_problem, problem)

    def _state_changed(self, state: State, reason: str) -> None:
        self._state = state
        if state == "live":
            self._telling.connected()
        if state == "lost":
            self._telling.tell(ClientError("connection.lost", f"{self._address.url}: {reason}"))
        if state == "refused":
            code = "filter.denied" if reason == _NONE_GRANTED else "login.refused"
            problem = ClientError(code, f"{self._address.url}: {reason}")
            _guarded(self._on_problem, problem)
            self._finish(problem)
        self._emit("state", state)

    def _denied(self, topic_filter: str) -> None:
        message = f"{topic_filter}: the credential does not permit this filter"
        _guarded(self._on_problem, ClientError("filter.denied", message))

    def _emit(self, name: str, *values: object) -> None:
        for listener in self._listeners.get(name, ()):
            _guarded(listener, *values)

    def _finish(self, error: ClientError | None) -> None:
        with self._changing:
            self._end = self._end or (error,)
        self.now_playing._close()
        for queue in self._queues:
            queue.end(error)


def _check_listener(name: str) -> None:
    if name not in _LISTENERS:
        raise _wrong("on", f"must name one of {', '.join(_LISTENERS)}")


class _MessageQueue:
    """
    A queue between the connection and an iteration, bounded. When more than 1,000 wait, a new message replaces the older
    one of the same key: the newest of each key stays. When more than 100,000 or 64 MiB wait all the same, the oldest fall
    out.
    """

    def __init__(self, limit: int = 1_000, most: int = 100_000, most_bytes: int = 64 * 1024 * 1024) -> None:
        self._limit = limit
        self._most = most
        self._most_bytes = most_bytes
        self._waiting: OrderedDict[int, tuple[str, Message, int]] = OrderedDict()
        self._newest: dict[str, int] = {}
        self._bytes = 0
        self._place = 0
        self._dropped = 0
        self._end: tuple[ClientError | None] | None = None
        self._condition = threading.Condition()

    def push(self, key: str, message: Message, size: int) -> None:
        """`size`: the bytes that the message counts with."""
        with self._condition:
            if self._end:
                return
            if len(self._waiting) >= self._limit and key in self._newest:
                self._drop(self._newest[key])
            while self._waiting and (len(self._waiting) >= self._most or self._bytes + size > self._most_bytes):
                self._drop(next(iter(self._waiting)))
            self._place += 1
            self._waiting[self._place] = (key, message, size)
            self._newest[key] = self._place
            self._bytes += size
            self._condition.notify()

    def end(self, error: ClientError | None) -> None:
        """What waits is still taken; `next` then raises the error, or returns None."""
        with self._condition:
            self._end = self._end or (error,)
            self._condition.notify_all()

    def next(self) -> Message | None:
        with self._condition:
            while not self._waiting and not self._end:
                self._condition.wait()
            if self._waiting:
                message = self._remove(next(iter(self._waiting)))
                dropped, self._dropped = self._dropped, 0
                return replace(message, dropped=dropped)
            error = self._end[0] if self._end else None
            if error:
                raise error
            return None

    def _drop(self, place: int) -> None:
        self._remove(place)
        self._dropped += 1

    def _remove(self, place: int) -> Message:
        key, message, size = self._waiting.pop(place)
        if self._newest.get(key) == place:
            del self._newest[key]
        self._bytes -= size
        return message


# --- What a livestream shows ------------------------------------------------------------------------------------------

_MAX_CONTROLS = 100
"""Maximum number of control states per livestream: publishers may invent names without end."""
_MAX_LIVESTREAMS = 100_000
_MAX_CHARACTERS = 64 * 1024 * 1024
"""What `now_playing` keeps at most: livestreams, and characters of all their texts. A hub knows 50,000 livestreams."""
_FAR_FUTURE = 10 * 60
"""An event time further in the future comes from a wrong clock."""


@dataclass(frozen=True)
class Track:
    """A track that plays now, or will play next. `time`: when it starts, seconds since the epoch."""

    id: str
    time: float
    type: str
    title: str
    artist: str
    length: float
    item: str
    cover: str | None


@dataclass(frozen=True)
class ControlState:
    """A control state, such as a traffic announcement, that is on or was on."""

    name: str
    time: float
    is_on: bool
    valid_until: float


@dataclass(frozen=True)
class Text:
    """Radiotext."""

    time: float
    text: str


@dataclass(frozen=True)
class NowPlaying(_Tracks):
    """The newest events of one livestream, as they are shown: a track of each kind, such as `playing`."""

    text: Text | None = None
    controls: tuple[ControlState, ...] = ()


class NowPlayingOfAll:
    """
    What each livestream shows now: the newest by event time, control states until their `validUntil`, `next` until it
    plays. A livestream of which nothing is known is not in it. Where a hub tells of more than 100,000 livestreams, or of
    texts of more than 64 MiB, those that changed longest ago are left out; `on_problem` is told at the first one.
    """

    def __init__(self, loop: _Loop, changed: Callable[[str, NowPlaying], None], full: Callable[[], None]) -> None:
        self._loop = loop
        self._changed = changed
        self._full = full
        self._was_full = False
        # In the order of their last changes.
        self._known: dict[str, NowPlaying] = {}
        self._characters = 0
        self._ends: dict[str, asyncio.TimerHandle] = {}

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._known))

    def get(self, livestream_id: str) -> NowPlaying | None:
        known = self._known.get(livestream_id)
        return known and _shown(known)

    def items(self) -> list[tuple[str, NowPlaying]]:
        return [(livestream_id, _shown(known)) for livestream_id, known in list(self._known.items())]

    def _take(self, livestream_id: str, event: dict[str, Any]) -> None:
        before = self._known.get(livestream_id, NowPlaying())
        after = _after(before, event, time.time())
        if after is before:
            return
        self._forget(livestream_id)
        self._known[livestream_id] = after
        self._characters += _size_of(livestream_id, after)
        self._make_room()
        if after.controls is not before.controls:
            self._wait_for_end(livestream_id, after)
        self._changed(livestream_id, _shown(after))

    def _forget(self, livestream_id: str) -> None:
        state = self._known.pop(livestream_id, None)
        if state:
            self._characters -= _size_of(livestream_id, state)

    def _make_room(self) -> None:
        """The newest one stays, however large it is."""
        while len(self._known) > 1 and (
            len(self._known) > _MAX_LIVESTREAMS or self._characters > _MAX_CHARACTERS
        ):
            oldest = next(iter(self._known))
            self._forget(oldest)
            if oldest in self._ends:
                self._ends.pop(oldest).cancel()
            if not self._was_full:
                self._was_full = True
                self._full()

    def _wait_for_end(self, livestream_id: str, state: NowPlaying) -> None:
        """Tells when the next control state of a livestream ends by its time."""
        if livestream_id in self._ends:
            self._ends.pop(livestream_id).cancel()
        now = time.time()
        first = min((control.valid_until for control in _controls_on(state, now)), default=None)
        if first is None:
            return

        def end() -> None:
            present = self._known[livestream_id]
            self._wait_for_end(livestream_id, present)
            if first <= time.time():
                self._changed(livestream_id, _shown(present))

        # The clock may be set, so that a long wait is looked at again.
        self._ends[livestream_id] = self._loop.later(min(first - now + 0.001, 3_600), end)

    def _close(self) -> None:
        for timer in self._ends.values():
            timer.cancel()
        self._ends.clear()


def _size_of(livestream_id: str, state: NowPlaying) -> int:
    """Characters of all texts of a livestream."""
    parts: list[object] = [state.text, *state.controls]
    parts += [getattr(state, row.kind) for row in _KINDS.values() if row.event_class == "track"]
    texts = [text for part in parts if part for text in vars(part).values() if isinstance(text, str)]
    return len(livestream_id) + sum(map(len, texts))


def _after(before: NowPlaying, event: dict[str, Any], now: float) -> NowPlaying:
    """Applies an event: the newest counts, by event time. Returns `before` itself if the event is not shown."""
    row = _kind_of(event)
    at = _parse_instant(event.get(row.time_field)) if row else None
    if row is None or at is None:
        return before
    if row.event_class == "control":
        return _with_control(before, event, at, now)
    if row.event_class == "data":
        is_news = _is_news(at, before.text, now)
        return replace(before, text=Text(at, _text(event.get("text")))) if is_news else before
    if row.event_class == "track" and _is_news(at, getattr(before, row.kind), now):
        return replace(before, **{row.kind: _track_of(event, at)})
    return before


def _with_control(before: NowPlaying, event: dict[str, Any], at: float, now: float) -> NowPlaying:
    name = _text(event.get("name"))
    known = next((control for control in before.controls if control.name == name), None)
    if not _is_news(at, known, now):
        return before
    until = _parse_instant(event.get("validUntil"))
    control = ControlState(name, at, event.get("state") is True, at if until is None else until)
    others = tuple(one for one in before.controls if one is not known)
    return replace(before, controls=(*others, control)[-_MAX_CONTROLS:])


def _is_news(at: float, shown: Track | Text | ControlState | None, now: float) -> bool:
    """Whether an event replaces the shown event, by their times (docs/subscribers.md, "The newest event counts")."""
    return shown is None or shown.time <= at or shown.time > now + _FAR_FUTURE


def _shown(state: NowPlaying) -> NowPlaying:
    coming, playing = state.next, state.playing
    if coming and playing and (coming.time < playing.time or (coming.item != "" and coming.item == playing.item)):
        coming = None
    return replace(state, next=coming, controls=_controls_on(state, time.time()))


def _controls_on(state: NowPlaying, now: float) -> tuple[ControlState, ...]:
    return tuple(control for control in state.controls if control.is_on and control.valid_until > now)


def _track_of(event: dict[str, Any], at: float) -> Track:
    length = event.get("length")
    return Track(
        id=_text(event.get("id")),
        time=at,
        type=_text(event.get("type")),
        title=_text(event.get("title")),
        artist=_text(event.get("artist")),
        length=length if _is_number(length) else 0,
        item=_text(event.get("playlistItemId")),
        cover=_cover_of(event.get("media")),
    )


def _cover_of(media: object) -> str | None:
    """The URL of a cover, which must be https. Real covers come before fallbacks."""
    covers = [one for one in media if _get(one, "type") == "cover"] if isinstance(media, list) else []
    real = [one for one in covers if one.get("isFallback") is not True]
    urls = (one.get("url") for one in real + covers)
    return next((url for url in urls if isinstance(url, str) and url.lower().startswith("https://")), None)


def _kind_of(event: object) -> _EventKind | None:
    """What the name of an event says. None: no event, or one that is newer than this file."""
    name = _get(event, "event")
    return _KINDS.get(name) if isinstance(name, str) else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


_INSTANT = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d)(?::(\d\d))?(?:[.,](\d+))?(?:[Zz]|([+-])(\d\d)(?::?(\d\d))?)", re.ASCII
)


def _parse_instant(text: object) -> float | None:
    """
    Reads an instant, in any of the forms of docs/publishers.md, "Times". Returns seconds since the epoch, or None if it is
    no instant: impossible dates, leap seconds and 24:00 are none. Digits after the microseconds are cut off.
    """
    match = _INSTANT.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    year, month, day, hour, minute = (int(match[index]) for index in range(1, 6))
    second, offset_hour, offset_minute = (int(match[index] or 0) for index in (6, 9, 10))
    if hour > 23 or minute > 59 or second > 59 or offset_hour > 23 or offset_minute > 59:
        return None
    try:
        days = calendar.timegm(datetime.date(year, month, day).timetuple())
    except ValueError:
        return None
    # Without seconds, the fraction is a fraction of a minute.
    billionths = int((match[7] or "")[:9].ljust(9, "0")) * (60 if match[6] is None else 1)
    offset = (offset_hour * 60 + offset_minute) * (-1 if match[8] == "-" else 1)
    seconds = days + (hour * 60 + minute - offset) * 60 + second
    return (seconds * 1_000_000 + billionths // 1000) / 1_000_000


# --- Publishing over HTTPS --------------------------------------------------------------------------------------------

_MAX_TOPIC_ROUNDS = 3
"""The first event of a livestream makes its topic and must be sent again. Each time another one may be missing."""
_FIRST_PAUSE, _LONGEST_PAUSE = 1, 30
"""Pause before a request is sent again where the hub does not say how long."""
_RENEW_BEFORE = 60
"""A token is renewed so long before it expires."""


class _EveryHttpsReport(TypedDict):
    outcome: Literal["published"]
    statuses: Statuses
    id: str | None
    event: dict[str, Any]


class HttpsReport(_EveryHttpsReport, total=False):
    """What became of an event over HTTPS. `event`: as the hub has stored it. `id` is None in a dry run."""

    warnings: list[Remark]
    dryRun: Literal[True]


def create_https_publisher(
    *, url: str, email: str, password: str, ca: str | None = None, patience: float = 120
) -> HttpsPublisher:
    """
    Publishes over HTTPS, for those who cannot use MQTT: logs in, keeps the token, and sends again what the hub asks to send
    again (service.md §5.3). Raises `ClientError` for a wrong option.

    url: base URL of the hub, `https://…`.
    ca: CA to trust instead of those of the system: PEM text, or the path of a PEM file.
    patience: how long one event is tried while the hub is away or asks to wait.
    """
    asking = _Http(ca)
    _check_url("url", url, ("https",))
    _check_text("email", email)
    _check_text("password", password)
    if not _is_number(patience) or not patience >= 0:
        raise _wrong("patience", "must be seconds from 0 on")
    return HttpsPublisher(url if url.endswith("/") else f"{url}/", email, password, asking, patience)


class HttpsPublisher:
    """See `create_https_publisher`. It may be used by several threads. In a `with` statement it closes itself."""

    def __init__(self, base: str, email: str, password: str, asking: _Http, patience: float) -> None:
        self._base = base
        self._account = {"email": email, "password": password}
        self._http = asking
        self._patience = patience
        self._logging_in = threading.Lock()
        self._login: _Login | None = None
        self._closed = threading.Event()

    def publish(self, event: Mapping[str, Any]) -> HttpsReport:
        """
        Sends a track event. Returns when the hub has published it for all its livestreams. Raises `EventRefused` where it
        was blocked for one or more of them, or `ClientError`.
        """
        return self._publish(event, False)

    def check(self, event: Mapping[str, Any]) -> HttpsReport:
        """Asks the hub what it would do with an event. Nothing is published."""
        return self._publish(event, True)

    def close(self) -> None:
        """Takes no more events. Those that other threads publish now are not tried again."""
        self._closed.set()

    def __enter__(self) -> HttpsPublisher:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _publish(self, event: Mapping[str, Any], dry_run: bool) -> HttpsReport:
        if self._closed.is_set():
            raise ClientError("closed")
        payload = _write_event(event)
        name = event.get("event")
        if not isinstance(name, str):
            error: Remark = {"path": ".event", "message": "must be the name of the event", "errorCode": "event.name"}
            raise EventRefused("invalid", [error])
        path = f"events/{urllib.parse.quote(name, safe='')}{'?dryRun=true' if dry_run else ''}"
        deadline = time.monotonic() + self._patience
        errors: list[Remark] = []
        for _ in range(_MAX_TOPIC_ROUNDS):
            body = self._post(path, payload, deadline).body
            errors = _remarks_in(body, "errors")
            if not any(one["errorCode"] == "topic.created" for one in errors):
                break
        counts = _get(body, "statuses")
        statuses: Statuses = {
            "published": _count_in(counts, "published"),
            "blocked": _count_in(counts, "blocked"),
            "failed": _count_in(counts, "failed"),
        }
        if errors:
            raise EventRefused("blocked" if statuses["blocked"] > 0 else "failed", errors)
        stored = _get(body, "event")
        stored = stored if isinstance(stored, dict) else {}
        identifier = stored.get("id")
        report: HttpsReport = {
            "outcome": "published",
            "statuses": statuses,
            "id": identifier if isinstance(identifier, str) else None,
            "event": stored,
        }
        warnings = _remarks_in(body, "warnings")
        if warnings:
            report["warnings"] = warnings
        if dry_run:
            report["dryRun"] = True
        return report

    def _post(self, path: str, payload: bytes, deadline: float) -> _Answer:
        """Posts with a valid token. Raises what the hub has decided: only a 201 comes back."""
        for is_second in (False, True):
            token = self._token(deadline)
            answer = self._patiently(path, payload, deadline, token)
            if answer.status == 201:
                return answer
            errors = _remarks_in(answer.body, "errors")
            if answer.status == 400:
                raise EventRefused("invalid", errors)
            if answer.status == 413:
                raise EventRefused("invalid", [_too_large()])
            if answer.status not in (401, 403):
                raise _unexpected(path, answer)
            if is_second or any(one["errorCode"] == "authorization.permission" for one in errors):
                break
            # The hub knows the token no more, for example because the password was changed.
            with self._logging_in:
                if self._login and self._login.token == token:
                    self._login = None
        raise ClientError("login.refused", _message_of(answer))

    def _token(self, deadline: float) -> str:
        """Those who publish at the same time share one log-in."""
        with self._logging_in:
            if self._login is None or time.monotonic() >= self._login.until:
                self._login = self._log_in(self._login, deadline)
            return self._login.token

    def _log_in(self, former: _Login | None, deadline: float) -> _Login:
        if former:
            body = json.dumps({"refreshToken": former.refresh_token}).encode()
            answer = self._patiently("auth/refresh", body, deadline)
            if answer.status == 200:
                return _read_login(answer)
        answer = self._patiently("auth/login", json.dumps(self._account).encode(), deadline)
        if answer.status == 200:
            return _read_login(answer)
        if answer.status in (400, 401, 403):
            raise ClientError("login.refused", _message_of(answer))
        raise _unexpected("auth/login", answer)

    def _patiently(self, path: str, body: bytes, deadline: float, token: str | None = None) -> _Answer:
        """Posts again while the hub is away (no answer, 5xx) or asks to wait (429, 503 with Retry-After)."""
        pause: float = _FIRST_PAUSE
        while True:
            answer: _Answer | Exception
            try:
                answer = self._http.ask("POST", self._base + path, body, token)
            except (OSError, http.client.HTTPException) as error:
                answer = error
            if isinstance(answer, _Answer) and answer.status != 429 and answer.status < 500:
                return answer
            # All who wait come back at different times.
            wait = pause * random.uniform(0.5, 1)
            if isinstance(answer, _Answer) and answer.retry_after is not None:
                wait = max(answer.retry_after, 0) + random.random()
            if time.monotonic() + wait > deadline or self._closed.wait(wait):
                raise _unexpected(path, answer)
            pause = min(pause * 2, _LONGEST_PAUSE)


@dataclass(frozen=True)
class _Login:
    token: str
    refresh_token: str
    until: float
    """By the monotonic clock: the clocks of hub and client may differ."""


def _read_login(answer: _Answer) -> _Login:
    token, refresh, seconds = (_get(answer.body, name) for name in ("token", "refreshToken", "expiresIn"))
    if not isinstance(token, str) or not isinstance(refresh, str) or not _is_number(seconds):
        raise ClientError("hub.unavailable", "the hub answered a log-in without a token")
    return _Login(token, refresh, time.monotonic() + seconds - _RENEW_BEFORE)


def _remarks_in(body: object, name: str) -> list[Remark]:
    """Places are those in the event, as over MQTT."""
    found = _get(body, name)
    return [
        {
            "path": re.sub(r"^\.body(?=.)", "", re.sub(r"^\.body$", ".", str(one.get("path")))),
            "message": str(one.get("message")),
            "errorCode": str(one.get("errorCode")),
        }
        for one in (found if isinstance(found, list) else [])
        if isinstance(one, dict)
    ]


def _count_in(counts: object, name: str) -> int:
    count = _get(counts, name)
    return count if isinstance(count, int) else 0


def _message_of(answer: _Answer) -> str:
    message = _get(answer.body, "message")
    return message if isinstance(message, str) else f"the hub answered {answer.status}"


def _unexpected(path: str, answer: _Answer | Exception) -> ClientError:
    if isinstance(answer, Exception):
        error = ClientError("hub.unavailable", str(answer))
        error.__cause__ = answer
        return error
    return ClientError("hub.unavailable", f"{path.split('?')[0]}: {answer.status} {_message_of(answer)}")


# --- Verifying webhooks -----------------------------------------------------------------------------------------------

_MAX_BODY = 1_000_000
"""All pushes are smaller (docs/webhooks.md, "How large it is")."""
_MAX_TOKEN = 8_192
"""All tokens of a hub are shorter."""
_TOLERANCE = 60
"""Difference between the clocks that is tolerated."""
_KEYS_FRESH, _KEYS_LONGEST, _KEYS_PAUSE = 5 * 60, 10 * 60, 10
"""The keys are kept for this long; without an answer of the hub for so long; and are not read more often than this."""
_MAX_HUBS = 100
_MAX_KEYS = 100

PUSH_REFUSALS = {
    "push.unreadable": (400, "the request is no push of a hub"),
    "token.missing": (401, "the request has no Bearer token"),
    # The hub takes 204 as an acknowledgement, so a forger learns nothing.
    "token.invalid": (204, "the token is forged, has expired, or is for somebody else"),
    # After 503 the hub comes again.
    "subscription.unknown": (503, "the push is for no subscription of the list"),
    "key.unknown": (503, "the hub names no such key now"),
    "hub.unreachable": (503, "the keys of the hub could not be read"),
}
"""
Why a push is refused: the status to answer with (docs/webhooks.md, "Verify the token"), and what it means. The codes are
stable.
"""


class PushRefused(Exception):
    """A push that is not genuine, or of which that cannot be told now. `status`: the status to answer with."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.status = PUSH_REFUSALS[code][0]


@dataclass(frozen=True)
class Push:
    """A push that is genuine."""

    event: dict[str, Any]
    message_id: str
    """The same for every repetition: remember those that you have processed."""
    publish_time: str
    """When the hub accepted the event, ISO 8601."""
    attributes: dict[str, str]
    subscription: str


def verify_push(
    headers: Mapping[str, str],
    body: bytes | str,
    *,
    hub: str,
    url: str,
    subscriptions: Iterable[Mapping[str, Any]],
    issuer: str | None = None,
    ca: str | None = None,
) -> Push:
    """
    Checks that a push is of the hub, and of one of these subscriptions. Returns its event.

    Raises `PushRefused`, which says with which `status` to answer, and `ClientError` (`option.invalid`) for a wrong option.
    Needs PyJWT and cryptography: raises `ImportError` without them.

    headers, body: of the request, the body as it came.
    hub: base URL of the hub; its keys are at `/.well-known/jwks.json`.
    url: the URL of the receiver, as it was given to the subscription.
    subscriptions: those that push to it, as `GET /subscriptions` lists them.
    issuer: `iss` of the tokens, where it is not the base URL of the hub.
    ca: CA to trust instead of those of the system: PEM text, or the path of a PEM file.
    """
    try:
        import cryptography  # noqa: F401
        import jwt
    except ImportError as error:
        raise ImportError("verify_push needs PyJWT and cryptography: pip install 'pyjwt[crypto]'") from error
    _check_url("hub", hub, ("https",))
    _check_url("url", url, ("https", "http"))
    if issuer is not None:
        _check_url("issuer", issuer, ("https", "http"))
    if isinstance(subscriptions, (str, bytes, Mapping)) or not isinstance(subscriptions, Iterable):
        raise _wrong("subscriptions", "must be the list of GET /subscriptions")
    token = _bearer_of(headers)
    push = _push_in(body)
    known = {one.get("name"): one.get("serviceAccount") for one in subscriptions}
    if push.subscription not in known:
        raise PushRefused("subscription.unknown", f"{_quoted(push.subscription)} is not in subscriptions")
    base = hub.rstrip("/")
    try:
        header = jwt.get_unverified_header(token)
        # The algorithm is the hub's, whatever the token would like (RFC 8725 §3.1).
        if header.get("alg") != "RS256":
            raise jwt.InvalidTokenError("it is not signed with RS256")
        if not isinstance(header.get("kid"), str) or header["kid"] == "":
            raise jwt.InvalidTokenError("it names no key")
        # An access token of a user is signed with the same keys (RFC 8725 §3.11).
        if header.get("typ", "JWT") != "JWT":
            raise jwt.InvalidTokenError("it is a token for something else")
        if "crit" in header:
            raise jwt.InvalidTokenError("it asks for an extension")
        claims = jwt.decode(
            token,
            _key_named(header["kid"], base, ca),
            algorithms=["RS256"],
            audience=url,
            issuer=issuer or base,
            leeway=_TOLERANCE,
            options={"require": ["exp", "iss", "aud"]},
        )
        account = known[push.subscription]
        if not isinstance(account, str) or claims.get("email") != account or claims.get("email_verified") is not True:
            raise jwt.InvalidTokenError(f"email is {_quoted(claims.get('email'))}, expected {account}, verified")
    except (jwt.InvalidTokenError, RecursionError) as error:
        raise PushRefused("token.invalid", f"the token is not valid: {error}") from error
    return push


def _bearer_of(headers: Mapping[str, str]) -> str:
    values = (value for name, value in headers.items() if name.lower() == "authorization")
    match = re.fullmatch(r"Bearer +(\S+) *", str(next(values, ""))[: 2 * _MAX_TOKEN], re.IGNORECASE)
    if match is None:
        raise PushRefused("token.missing", "there is no header Authorization: Bearer …")
    if len(match[1]) > _MAX_TOKEN:
        raise PushRefused("token.invalid", "the token is not valid: it is longer than any token of a hub")
    return match[1]


def _push_in(body: bytes | str) -> Push:
    """The push in a body (docs/webhooks.md, "What arrives")."""
    if not isinstance(body, (bytes, bytearray, str)) or len(body) > _MAX_BODY:
        raise PushRefused("push.unreadable", f"no push: the body must be text of at most {_MAX_BODY} bytes")
    value = _json_in(body)
    message, subscription = _get(value, "message"), _get(value, "subscription")
    data, message_id, publish_time = (_get(message, name) for name in ("data", "messageId", "publishTime"))
    texts = (subscription, data, message_id, publish_time)
    if not all(isinstance(text, str) for text in texts):
        raise PushRefused(
            "push.unreadable",
            "no push: the body is not a message with data, messageId and publishTime of a subscription",
        )
    try:
        event = _json_in(base64.b64decode(data, validate=True))
    except (binascii.Error, ValueError):
        event = None
    if not isinstance(event, dict):
        raise PushRefused("push.unreadable", "no push: data is not an event as JSON in base64")
    attributes = _get(message, "attributes")
    return Push(
        event=event,
        message_id=message_id,
        publish_time=publish_time,
        attributes=attributes if isinstance(attributes, dict) else {},
        subscription=subscription,
    )


@dataclass
class _Keys:
    """The keys with which a hub signs the tokens of pushes. Times by the monotonic clock."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    keys: dict[str, Any] = field(default_factory=dict)
    read_at: float = float("-inf")
    tried_at: float = float("-inf")
    problem: str = ""


_keys_of_hubs: OrderedDict[tuple[str, str | None], _Keys] = OrderedDict()
_keys_lock = threading.Lock()


def _key_named(kid: str, hub: str, ca: str | None) -> Any:
    """The key of this id. It is read from the configured hub, never from where a token says."""
    with _keys_lock:
        known = _keys_of_hubs.setdefault((hub, ca), _Keys())
        while len(_keys_of_hubs) > _MAX_HUBS:
            _keys_of_hubs.popitem(last=False)
    # All who ask meanwhile wait for the same answer.
    with known.lock:
        now = time.monotonic()
        is_known = kid in known.keys and now - known.read_at < _KEYS_FRESH
        # Strangers can name any key.
        if not is_known and now - known.tried_at >= _KEYS_PAUSE:
            known.tried_at = now
            _read_keys(known, f"{hub}/.well-known/jwks.json", _Http(ca))
        if time.monotonic() - known.read_at >= _KEYS_LONGEST:
            raise PushRefused("hub.unreachable", f"the keys of the hub cannot be read: {known.problem}")
        if kid not in known.keys:
            raise PushRefused("key.unknown", f"the hub names no key {_quoted(kid)}")
        return known.keys[kid]


def _read_keys(known: _Keys, url: str, asking: _Http) -> None:
    from jwt import PyJWK, PyJWTError

    try:
        answer = asking.ask("GET", url)
    except (OSError, http.client.HTTPException) as error:
        known.problem = _reason_of(error)
        return
    listed = _get(answer.body, "keys")
    if answer.status != 200 or not isinstance(listed, list):
        known.problem = f"{url} answered {answer.status} without keys"
        return
    keys = {}
    for key in listed[:_MAX_KEYS]:
        kid, kty, n, e = (_get(key, name) for name in ("kid", "kty", "n", "e"))
        uses = (_get(key, "alg") or "RS256", _get(key, "use") or "sig")
        if kty != "RSA" or uses != ("RS256", "sig") or not all(isinstance(one, str) for one in (kid, n, e)):
            continue  # a key for something else
        try:
            keys[kid] = PyJWK({"kty": kty, "n": n, "e": e}, algorithm="RS256").key
        except (PyJWTError, ValueError):
            continue  # not a key that can be used here; its tokens are of an unknown key
    known.keys = keys
    known.read_at = time.monotonic()
    known.problem = ""


def _quoted(value: object) -> str:
    """What a stranger sent, for a message: short, and in one line."""
    return json.dumps(value)[:200]


# --- MQTT connections -------------------------------------------------------------------------------------------------

_CONNECT_TIMEOUT = 20
"""How long the hub may take for CONNACK and SUBACK."""
_KEEP_ALIVE = 20
"""A connection that is dead without a word is noticed after twice this."""
_LONGEST_SILENCE = 30
"""How long the hub may acknowledge nothing although publishes wait for it. It may answer pings and nothing else."""
_SLOWEST_LINE = 1_000
"""
Bytes that the slowest line carries in a second. Behind a large event a ping waits as well, so both get so many seconds
more. The buffers of the system hide how much of it has left.
"""
_MAX_PACKET = 2 * 1024 * 1024
"""No packet of a hub is larger, bytes: events have at most 409,600, reports less."""
_MAX_MESSAGE = 16 * 1024 * 1024
"""Nor is a WebSocket message, which may hold many packets."""
_SUBSCRIBER_PAUSES = (0.5, 20)
"""Pause before the next attempt to connect: the first and the longest. It grows with each failure, shortened at random."""
_PROVEN = 60
"""A connection that lasted so long ends an outage, also if nothing was published on it."""
_ENDING = 5
"""How long `close` waits for the end of its thread, after everything else."""
_REFUSED_PAUSE = 5 * 60
"""Pause after a refusal that only a person can end."""
# MQTT 3.1.1 §3.2.2.3. In its second callback API, paho 2 says it with the codes of MQTT 5.
_CONNACK_CODES = {132: 1, 133: 2, 136: 3, 134: 4, 135: 5}


@dataclass(frozen=True)
class _Address:
    """Where a connection leads. `path`: that of a WebSocket, else None."""

    url: str
    host: str
    port: int
    path: str | None
    context: ssl.SSLContext


class _Link:
    """
    One MQTT connection, of a paho client that never connects again by itself: paho would try a wrong password for ever, and
    repeats publishes before it subscribes, so that their reports would be missed.

    `owner` is told `connected(link, session_present)`, `subscribed(link, codes)`, `message(link, message)` and, once,
    `closed(link, code, reason)`; code: of the CONNACK, 0 where there was none.
    """

    def __init__(
        self, loop: _Loop, address: _Address, client_id: str, clean: bool, login: tuple[str, str], owner: Any
    ) -> None:
        self._loop = loop
        self._address = address
        self._owner = owner
        self._fd: int | None = None
        self._code = 0
        self._is_closed = False
        self._is_writing = False
        self._is_flushing = False
        self._progress = 0
        # What waits for its PUBACK, and when the last one came, or the first publish began to wait.
        self._acknowledged: dict[int, Callable[[], None]] = {}
        self._acknowledged_at = 0.0
        # Bytes of the largest event since nothing waited for its PUBACK.
        self._largest = 0
        self._is_connected = False
        self._filter_count = 0
        version = getattr(mqtt, "CallbackAPIVersion", None)
        first = () if version is None else (version.VERSION2,)
        client = mqtt.Client(
            *first,
            client_id=client_id,
            clean_session=clean,
            protocol=mqtt.MQTTv311,
            transport="tcp" if address.path is None else "websockets",
            reconnect_on_failure=False,
        )
        self._client = client
        client.username_pw_set(*login)
        client.tls_set_context(address.context)
        if address.path is not None:
            client.ws_set_options(path=address.path)
        client.max_inflight_messages_set(0)
        client.on_connect = self._on_connect
        client.on_subscribe = self._on_subscribe
        client.on_message = self._on_message
        client.on_publish = self._on_publish
        client.on_socket_close = self._on_socket_close
        client.on_socket_register_write = lambda *_: self._must_write()
        _bound_packets(client)
        self._late = loop.later(2 * _CONNECT_TIMEOUT, self._gone, "no answer in time")
        self._tick: asyncio.TimerHandle | None = None
        loop.in_thread(self._connect, self._opened)

    def subscribe(self, filters: Sequence[str], qos: int) -> None:
        self._filter_count = len(filters)
        self._client.subscribe([(one, qos) for one in filters])

    def publish(self, topic: str, payload: bytes, acknowledged: Callable[[], None]) -> None:
        """QoS 1. `acknowledged` is called at the PUBACK, and never if the connection is lost before."""
        if not self._acknowledged:
            self._acknowledged_at = time.monotonic()
            self._largest = 0
        self._largest = max(self._largest, len(payload))
        self._acknowledged[self._client.publish(topic, payload, qos=1).mid] = acknowledged

    def end(self) -> None:
        """Ends the connection. The owner is told nothing more."""
        if not self._is_closed:
            self._is_closed = True
            # Not from within a callback of paho, which would wait for itself.
            self._loop.soon(self._disconnect)

    def _disconnect(self) -> None:
        self._is_flushing = True  # the loop may have no further turn
        if self._fd is not None:
            self._client.disconnect()
            self._client.loop_write()
        self._release()

    def _connect(self) -> None:
        self._client.connect(self._address.host, self._address.port, _KEEP_ALIVE)

    # paho calls what follows, from `loop_read` and `loop_write`. A mistake of the owner is no fault of the connection: another
    # connection would only bring the same message again.

    def _on_connect(self, _client: Any, _data: Any, flags: Any, code: Any, *_: Any) -> None:
        self._progress += 1
        value = getattr(code, "value", code)
        if self._is_connected:
            self._gone("a second CONNACK")
            return
        self._is_connected = True
        self._code = _CONNACK_CODES.get(value, value)
        if self._code == 0 and not self._is_closed:
            present = flags["session present"] if isinstance(flags, dict) else flags.session_present
            _guarded(self._owner.connected, self, bool(present))

    def _on_subscribe(self, _client: Any, _data: Any, _mid: int, codes: Any, *_: Any) -> None:
        self._progress += 1
        self._late.cancel()
        if len(codes) != self._filter_count:
            self._gone("no answer to SUBSCRIBE")
        elif not self._is_closed:
            _guarded(self._owner.subscribed, self, [getattr(code, "value", code) for code in codes])

    def _on_message(self, _client: Any, _data: Any, message: Any) -> None:
        self._progress += 1
        if not self._is_closed:
            _guarded(self._owner.message, self, message)

    def _on_publish(self, _client: Any, _data: Any, mid: int, *_: Any) -> None:
        self._progress += 1
        self._acknowledged_at = time.monotonic()
        acknowledged = self._acknowledged.pop(mid, None)
        if acknowledged and not self._is_closed:
            _guarded(acknowledged)

    def _on_socket_close(self, *_: Any) -> None:
        if self._fd is not None:
            self._loop.unwatch(self._fd)
            self._fd = None

    # The loop calls what follows.

    def _opened(self, error: BaseException | None) -> None:
        sock = self._client.socket()
        if self._is_closed or error or sock is None:
            self._release()
            self._gone(_reason_of(error))
            return
        try:
            # Nagle's algorithm would hold back the second of two quick events for up to 40 ms.
            sock.setsockopt(6, 1, 1)
        except (AttributeError, OSError):
            pass  # a WebSocket of paho hides its socket
        self._fd = sock.fileno()
        self._loop.watch(self._fd, self._read)
        self._must_write()
        self._every_second()

    def _every_second(self) -> None:
        self._tick = self._loop.later(1, self._every_second)
        self._read()
        granted = self._largest / _SLOWEST_LINE if self._acknowledged else 0
        waited = time.monotonic() - self._acknowledged_at
        if self._fd is not None and waited > granted:
            self._step(self._client.loop_misc)
        if self._acknowledged and waited > granted + _LONGEST_SILENCE:
            self._gone("the hub acknowledges nothing")

    def _read(self) -> None:
        # TLS and WebSocket may hold packets that the socket does not show any more.
        progress = -1
        while self._fd is not None and progress != self._progress:
            progress = self._progress
            self._step(self._client.loop_read)
            # Nobody subscribes at QoS 2, and paho would keep each message until the hub releases it.
            if getattr(self._client, "_in_messages", None):
                self._gone("the hub sends at QoS 2")

    def _must_write(self) -> None:
        # What is sent in the same turn goes out together. paho also calls this while it connects, on another thread.
        if self._fd is not None and not self._is_flushing:
            self._is_flushing = True
            self._loop.soon(self._flush)

    def _flush(self) -> None:
        self._is_flushing = False
        if self._fd is None:
            return
        self._step(self._client.loop_write)
        if self._fd is not None and self._client.want_write() != self._is_writing:
            self._is_writing = not self._is_writing
            self._loop.watch_writing(self._fd, self._flush if self._is_writing else None)

    def _step(self, step: Callable[[], int]) -> None:
        try:
            code = step()
        except _NoMqtt as error:
            self._gone(str(error))
            return
        except Exception as error:  # noqa: BLE001 -- paho raises this and that at packets that it cannot read
            self._gone(f"{type(error).__name__}: {error}")
            return
        if code != 0 or (self._fd is None and not self._is_closed):
            self._gone(mqtt.error_string(code) if code else "the connection was closed")

    def _gone(self, reason: str) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._release()
        if self._code:
            reason = f"CONNACK {self._code}"
        # Not from within a callback of paho, as above.
        self._loop.soon(self._owner.closed, self, self._code, reason)

    def _release(self) -> None:
        self._late.cancel()
        if self._tick:
            self._tick.cancel()
        self._acknowledged.clear()
        sock = self._client.socket()
        if self._fd is not None:
            self._loop.unwatch(self._fd)
            self._fd = None
        if sock is not None:
            sock.close()


class _NoMqtt(Exception):
    """What answers speaks another protocol."""


def _reason_of(error: BaseException | None) -> str:
    """Why there is no connection, and what helps where that is known."""
    if isinstance(error, urllib.error.URLError) and isinstance(error.reason, Exception):
        error = error.reason
    # X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT and its like: no CA that is known has signed it.
    if isinstance(error, ssl.SSLCertVerificationError) and error.verify_code in (2, 18, 19, 20, 21):
        return f"{error}: set ca to the CA of the hub"
    return str(error or "the connection was closed")


def _bound_packets(client: Any) -> None:
    """
    paho asks its socket for the rest of a packet at once, up to 256 MiB, and keeps a WebSocket message until its end. This
    makes it raise at more than any hub sends.
    """
    receive = getattr(client, "_sock_recv", None)
    is_mqtt = False

    def receive_bounded(size: int) -> bytes:
        nonlocal is_mqtt
        message = getattr(client.socket(), "_readbuffer", b"")
        if size > _MAX_PACKET or len(message) > _MAX_MESSAGE:
            raise ValueError(f"a packet of the hub has more than {_MAX_PACKET} bytes")
        received: bytes = receive(size)  # type: ignore[misc]
        # A hub begins with CONNACK.
        if received and not is_mqtt and received[0] != 0x20:
            raise _NoMqtt("this is no MQTT port, another protocol answers")
        is_mqtt = is_mqtt or received != b""
        return received

    if receive is not None:
        client._sock_recv = receive_bounded


class _Connection:
    """Keeps the connection of a publisher, over losses and refusals."""

    def __init__(
        self, loop: _Loop, address: _Address, username: str, password: str, publisher: Publisher, feedback: str
    ) -> None:
        self._loop = loop
        self._address = address
        self._login = (username, password)
        self._publisher = publisher
        self._filter = feedback
        self._link: _Link | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._failures = 0
        self._lost_at = 0.0
        self._is_resumed = False
        self._denied = False
        self._ready_at: float | None = None

    def attempt(self) -> None:
        publisher = self._publisher
        self._denied = False
        self._ready_at = None
        # Without an outbox the session would outlive the process, and nobody would come back for it.
        clean = publisher._outbox is None
        self._link = _Link(self._loop, self._address, publisher._client_id, clean, self._login, self)

    def proved(self) -> None:
        """The connection carries what it is for: the next pause is short again."""
        self._failures = 0

    def end(self) -> None:
        if self._timer:
            self._timer.cancel()
        if self._link:
            self._link.end()

    def connected(self, link: _Link, session_present: bool) -> None:
        self._is_resumed = session_present
        # With a clean session, reports do not outlive the connection: a PUBACK for each would be for nothing.
        link.subscribe([self._filter], 1 if self._publisher._outbox else 0)

    def subscribed(self, link: _Link, codes: list[int]) -> None:
        if any(code >= 0x80 for code in codes):
            link.end()
            self._refuse("feedback.denied", f"{self._filter}: not granted")
            return
        self._ready_at = time.monotonic()
        self._publisher._ready(link, self._is_resumed)

    def message(self, _link: _Link, message: Any) -> None:
        self._publisher._received(message.payload, message.dup)

    def closed(self, _link: _Link, code: int, reason: str) -> None:
        self._link = None
        if code in (4, 5):
            self._refuse("login.refused", f"the hub refused the log-in: CONNACK {code}")
            return
        if code == 2:
            self._publisher._renamed(_new_client_id())
        now = time.monotonic()
        if self._ready_at is not None and now - self._ready_at > _PROVEN:
            self._failures = 0
        if self._failures == 0:
            self._lost_at = now
        self._failures += 1
        self._timer = self._loop.later(_publisher_pause(self._failures, now - self._lost_at), self.attempt)
        self._publisher._lost(ClientError("connection.lost", f"{self._address.url}: {reason}"))

    def _refuse(self, code: str, message: str) -> None:
        # With an outbox: go on trying. Otherwise this is the end.
        if self._publisher._outbox:
            self._timer = self._loop.later(_REFUSED_PAUSE, self.attempt)
        self._publisher._refused(ClientError(code, message))


class _Subscription:
    """Keeps subscriptions across lost connections and new logins. Each new connection brings the retained messages."""

    def __init__(
        self,
        loop: _Loop,
        address: _Address,
        filters: list[str],
        logins: _GivenLogin | _HourlyLogins,
        subscriber: Subscriber,
    ) -> None:
        self._loop = loop
        self._address = address
        self._filters = filters
        self._logins = logins
        self._subscriber = subscriber
        self._denied: set[str] = set()
        self._current: _Link | None = None
        # The next ones, until their filters are granted: the present one may be lost while another is being opened.
        self._opening: set[_Link] = set()
        self._expires_at: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._failures = 0
        self._is_closed = False

    def begin(self, is_fresh: bool = False) -> None:
        """Connects. `is_fresh`: with a login that ends later than the present one."""
        if not self._is_closed:
            self._loop.in_thread(lambda: self._logins.log_in(is_fresh), self._open)

    def close(self) -> None:
        self._is_closed = True
        if self._timer:
            self._timer.cancel()
        for link in self._opening:
            link.end()
        if self._current:
            self._current.end()
        self._opening.clear()
        self._current = None

    def _open(self, taken: _ReaderLogin | _NoLogin | BaseException | None) -> None:
        if self._is_closed:
            return
        if isinstance(taken, _ReaderLogin):
            self._expires_at = taken.expires_at
            login = (taken.username, taken.password)
            self._opening.add(_Link(self._loop, self._address, self._logins.client_id(), True, login, self))
        elif isinstance(taken, _NoLogin) and taken.is_refused and not self._current:
            self._refuse(taken.reason)
        elif isinstance(taken, _NoLogin):
            self._again(taken.reason, taken.retry_after)
        else:
            self._again(str(taken), None)

    def connected(self, link: _Link, _session_present: bool) -> None:
        link.subscribe(self._filters, 1)

    def subscribed(self, link: _Link, codes: list[int]) -> None:
        for one, code in zip(self._filters, codes):
            if code < 0x80:
                self._denied.discard(one)
            elif one not in self._denied:
                self._denied.add(one)
                self._subscriber._denied(one)
        if len(self._denied) == len(self._filters):
            self._refuse(_NONE_GRANTED)
            return
        # The former connection ends only now, so that no message is missed.
        if self._current:
            self._current.end()
        self._current = link
        self._opening.discard(link)
        self._failures = 0
        if self._timer:
            self._timer.cancel()
        if self._expires_at is not None:
            # The random time spreads the requests of many clients.
            wait = max(self._expires_at - time.monotonic() - random.uniform(2 * 60, 6 * 60), 10)
            self._timer = self._loop.later(wait, self.begin, True)
        self._subscriber._state_changed("live", "")

    def message(self, _link: _Link, message: Any) -> None:
        self._subscriber._received(message.topic, message.payload, message.retain)

    def closed(self, link: _Link, code: int, reason: str) -> None:
        if self._is_closed or link not in (self._current, *self._opening):
            return
        if link is self._current:
            self._current = None
        self._opening.discard(link)
        if code in (4, 5) and not self._logins.login_refused():
            self._refuse(f"the hub refused user name and password (CONNACK {code})")
            return
        self._again(reason, None)

    def _refuse(self, reason: str) -> None:
        self.close()
        self._subscriber._state_changed("refused", reason)

    def _again(self, reason: str, seconds: float | None) -> None:
        """Tries again in a while. Reports `lost` only if no other connection is open."""
        if not self._current:
            self._subscriber._state_changed("lost", reason)
        wait = _pause(_SUBSCRIBER_PAUSES, self._failures) if seconds is None else seconds
        self._failures += 1
        if self._timer:
            self._timer.cancel()
        self._timer = self._loop.later(wait, self.begin)


@dataclass(frozen=True)
class _ReaderLogin:
    username: str
    password: str
    expires_at: float | None = None
    """From then on the hub refuses it, by the monotonic clock. None: it has no end."""


@dataclass(frozen=True)
class _NoLogin:
    """Why there is no login now. `is_refused`: the hub gives none."""

    is_refused: bool
    reason: str
    retry_after: float | None


class _GivenLogin:
    """The user name and password that the caller gave."""

    def __init__(self, username: str, password: str) -> None:
        self._login = _ReaderLogin(username, password)

    def client_id(self) -> str:
        return _new_client_id()

    def log_in(self, _is_fresh: bool) -> _ReaderLogin:
        return self._login

    def login_refused(self) -> bool:
        """Whether another login may help."""
        return False


class _HourlyLogins:
    """The logins that a node with a public page gives everybody for an hour (docs/https.md, "Pages")."""

    def __init__(self, hub: str, asking: _Http) -> None:
        self._hub = hub
        self._http = asking
        self._kept: _ReaderLogin | None = None

    def client_id(self) -> str:
        # The hub takes these logins with no other client ids.
        return f"page-{uuid.uuid4()}"

    def log_in(self, is_fresh: bool) -> _ReaderLogin | _NoLogin:
        kept = self._kept
        if kept and not is_fresh and kept.expires_at is not None and kept.expires_at - time.monotonic() > 5 * 60:
            return kept
        try:
            answer = self._http.ask("POST", f"{self._hub}/auth/mqtt")
        except (OSError, http.client.HTTPException) as error:
            return _NoLogin(False, f"{self._hub} cannot be reached: {_reason_of(error)}", None)
        username, password = _get(answer.body, "username"), _get(answer.body, "password")
        if answer.status == 200 and isinstance(username, str) and isinstance(password, str):
            _check_text("username", username)
            _check_text("password", password)
            left = (_parse_instant(_get(answer.body, "expiresAt")) or 0) - (answer.date or time.time())
            # The clock here may be hours off.
            lasts = left if 10 * 60 < left <= 61 * 60 else 30 * 60
            self._kept = _ReaderLogin(username, password, time.monotonic() + lasts)
            return self._kept
        if answer.status in (401, 403):
            reason = f"{self._hub} gives strangers no credential (HTTP {answer.status}): name username and password"
            return _NoLogin(True, reason, None)
        # Hours would be a mistake of the server, or of a proxy.
        retry_after = None if answer.retry_after is None else min(max(answer.retry_after, 1), 3_600)
        return _NoLogin(False, f"{self._hub}/auth/mqtt answered {answer.status}", retry_after)

    def login_refused(self) -> bool:
        """Whether another login may help."""
        self._kept = None
        return True


def _pause(pauses: tuple[float, float], failures: int) -> float:
    first, longest = pauses
    return min(first * 2 ** min(failures, 30), longest) * random.uniform(0.5, 1)


def _publisher_pause(failures: int, outage: float) -> float:
    """
    Pause of a publisher before the next attempt to connect. It doubles with each failure, up to five seconds in the first
    two minutes of an outage, and from then on grows with it to a minute. It is shortened at random.
    """
    return min(2 ** min(failures - 1, 30), max(5, outage - 120), 60) * random.uniform(0.5, 1)


def _new_client_id() -> str:
    """A client id that nobody else has."""
    return f"hub-client-{uuid.uuid4()}"


# --- The thread of a client, and HTTP ---------------------------------------------------------------------------------


class _Loop:
    """An event loop in a thread of its own: all state of a client belongs to this thread, so that nothing needs locks."""

    def __init__(self, name: str) -> None:
        self._pid = os.getpid()
        # The other loop of Windows watches no sockets.
        self._loop = asyncio.SelectorEventLoop()
        self._ending = threading.Lock()
        self._has_ended = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self._loop.run_forever()
        with self._ending:
            self._has_ended = True
        # Whatever was called before this is still done.
        self._loop.call_soon(self._loop.stop)
        self._loop.run_forever()
        self._loop.close()

    def soon(self, call: Callable[..., object], *args: Any) -> None:
        """Calls on the thread of the loop. Raises `ClientError` with `closed` after its end, and in a forked process."""
        if os.getpid() != self._pid:
            raise ClientError("closed", "this client belongs to the process that forked this one: connect here, too")
        with self._ending:
            if self._has_ended:
                raise ClientError("closed")
            self._loop.call_soon_threadsafe(call, *args)

    def later(self, seconds: float, call: Callable[..., object], *args: Any) -> asyncio.TimerHandle:
        """On the thread of the loop only."""
        return self._loop.call_later(seconds, call, *args)

    def in_thread(self, work: Callable[[], Any], done: Callable[[Any], object]) -> None:
        """Does what blocks in another thread, and calls `done` with its result or its exception."""

        def run() -> None:
            result: Any
            try:
                result = work()
            except Exception as error:  # noqa: BLE001 -- whatever it is, it is handed on
                result = error
            try:
                self.soon(done, result)
            except ClientError:
                pass  # the client was closed meanwhile

        threading.Thread(target=run, name=f"{self._thread.name}, connecting", daemon=True).start()

    def watch(self, fd: int, readable: Callable[[], None]) -> None:
        self._loop.add_reader(fd, readable)

    def watch_writing(self, fd: int, writable: Callable[[], None] | None) -> None:
        if writable:
            self._loop.add_writer(fd, writable)
        else:
            self._loop.remove_writer(fd)

    def unwatch(self, fd: int) -> None:
        self._loop.remove_reader(fd)
        self._loop.remove_writer(fd)

    def wait(self, future: Future[Any], timeout: float | None) -> Any:
        """The result of a future that this loop will settle."""
        if threading.current_thread() is self._thread:
            raise RuntimeError("a callback must not wait for its own client: use submit, or another thread")
        try:
            return future.result(timeout)
        except concurrent.futures.TimeoutError:
            if future.done():
                raise
            raise TimeoutError("nobody knows yet what became of the event; it is still on its way") from None

    def wait_for_end(self, closed: Future[Any]) -> Any:
        """As `wait`, and then for the end of the thread: Python may crash where it ends beside a thread that runs."""
        result = self.wait(closed, None)
        self._thread.join(_ENDING)
        return result

    def stop(self) -> None:
        self._loop.stop()


@dataclass(frozen=True)
class _Answer:
    """An answer to a request. `body`: what JSON it was, else None. `retry_after`: seconds; `date`: since the epoch."""

    status: int
    body: Any
    retry_after: float | None
    date: float | None


class _Http:
    """
    Asks a hub. `ask` raises `OSError` or `HTTPException` if there is no answer within `_PATIENCE` of the handshake, or if it
    is longer than a megabyte.
    """

    _PATIENCE = 15
    _MAX_ANSWER = 1_000_000

    def __init__(self, ca: str | None) -> None:
        context = _tls_context(ca)
        context.sslsocket_class = _ImpatientSocket
        self._opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), _NoRedirects())

    def ask(self, method: str, url: str, body: bytes | None = None, token: str | None = None) -> _Answer:
        headers = {"accept": "application/json"}
        if body is not None:
            headers["content-type"] = "application/json"
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        request = urllib.request.Request(url, data=body, headers=headers, method=method)
        try:
            response = self._opener.open(request, timeout=self._PATIENCE)
        except urllib.error.HTTPError as error:
            response = error  # an answer all the same
        with response:
            text = b""
            while part := response.read1(65_536):
                text += part
                if len(text) > self._MAX_ANSWER:
                    raise OSError("the answer is too long")
            return _Answer(
                response.status if hasattr(response, "status") else response.code,
                _json_in(text),
                _seconds_in(response.headers.get("retry-after")),
                _date_in(response.headers.get("date")),
            )


class _ImpatientSocket(ssl.SSLSocket):
    """Its time-out counts from the handshake on. That of other sockets begins anew with each byte."""

    _ends_at: float | None = None

    def recv_into(self, *args: Any) -> int:
        self._hurry()
        return super().recv_into(*args)

    def send(self, *args: Any) -> int:
        self._hurry()
        return super().send(*args)

    def _hurry(self) -> None:
        if self._ends_at is None:
            self._ends_at = time.monotonic() + _Http._PATIENCE
        left = self._ends_at - time.monotonic()
        if left <= 0:
            raise TimeoutError("the answer takes too long")
        self.settimeout(left)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _seconds_in(text: str | None) -> float | None:
    return int(text) if text and re.fullmatch(r"[0-9]{1,9}", text) else None


def _date_in(text: str | None) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp() if text else None
    except (TypeError, ValueError):
        return None


# --- Options and small things -----------------------------------------------------------------------------------------


def _address_of(url: str, schemes: tuple[str, ...], context: ssl.SSLContext) -> _Address:
    parts = _check_url("url", url, schemes)
    if parts.scheme == "mqtts":
        return _Address(url, parts.hostname or "", parts.port or 8883, None, context)
    path = parts.path if parts.path not in ("", "/") else "/mqtt"
    return _Address(url, parts.hostname or "", parts.port or 443, path, context)


def _check_url(name: str, url: str, schemes: tuple[str, ...]) -> urllib.parse.SplitResult:
    expected = f"must begin with {' or '.join(f'{scheme}://' for scheme in schemes)}"
    try:
        parts = urllib.parse.urlsplit(url) if isinstance(url, str) else None
        if parts is None or parts.scheme not in schemes or not parts.hostname or re.search(r"\s", url):
            raise _wrong(name, expected)
        parts.port  # noqa: B018 -- raises ValueError where it is none
    except ValueError as error:
        raise _wrong(name, expected) from error
    if parts.username is not None or parts.password is not None:
        raise _wrong(name, "must not hold user or password")
    return parts


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str) or value == "":
        raise _wrong(name, "must be a text")
    # MQTT 3.1.1 §1.5.3. paho raises at a longer one, where nobody expects it.
    if len(value.encode(errors="replace")) > 65_535:
        raise _wrong(name, "must have at most 65,535 bytes")


def _wrong(name: str, expected: str) -> ClientError:
    return ClientError("option.invalid", f"{name} {expected}")


def _tls_context(ca: str | None) -> ssl.SSLContext:
    """Trusts a CA that is given as PEM text or as the path of a file, else those of the system. Raises `ClientError`."""
    if ca is None:
        return ssl.create_default_context()
    try:
        if "-----BEGIN" not in os.fspath(ca):
            with open(ca, encoding="ascii") as file:
                ca = file.read()
        return ssl.create_default_context(cadata=ca)
    except (OSError, TypeError, ValueError) as error:
        raise ClientError("option.invalid", f"ca must be PEM text or the path of a PEM file: {error}") from error


def _need_paho() -> None:
    if mqtt is None:
        raise ImportError("publishing and subscribing need paho-mqtt 1.6 or 2.x: pip install paho-mqtt")


def _json_in(text: bytes | str) -> Any:
    """What JSON a text is. None: it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _is_number(value: object) -> bool:
    """Whether it is a number that is one in JavaScript, too: Python also reads NaN, and integers without end."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 2**63


def _warn(problem: ClientError) -> None:
    _log.warning("%s: %s", problem.code, problem)


class _Telling:
    """Tells problems with a connection. Attempts follow each other: the same one is told again only after a minute."""

    def __init__(self, on_problem: Callable[[ClientError], object]) -> None:
        self._on_problem = on_problem
        self._last = ""
        self._told_at = 0.0

    def tell(self, problem: ClientError) -> None:
        now = time.monotonic()
        if str(problem) == self._last and now - self._told_at < 60:
            return
        self._last = str(problem)
        self._told_at = now
        _guarded(self._on_problem, problem)

    def connected(self) -> bool:
        """Whether a problem was told since the last connection."""
        was_lost, self._last = self._last != "", ""
        return was_lost


def _guarded(call: Callable[..., object], *args: object) -> None:
    """The mistake of a callback is seen, and stops nobody else."""
    try:
        call(*args)
    except Exception:  # noqa: BLE001
        _log.exception("a callback of the now-playing hub client failed")


def _running_future() -> Future[Any]:
    """A future that nobody can cancel: the event may be on its way."""
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()
    return future


def _succeed(future: Future[Any], result: Any) -> None:
    # It may have been told already, for example that the log-in was refused, and gone out from the outbox later.
    if not future.done():
        future.set_result(result)


def _fail(future: Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
