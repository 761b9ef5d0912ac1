"""Session: one worker, as a state machine of packets, time and what its agent wants.

True only here: what an agent can ask of it.  It calls and answers, holds references and
drops them, joins, leaves and finishes; it hands packets in and tells the time, and
takes packets and events out.

Rules:
- nothing below reads a clock, draws a number, blocks or does I/O: the same calls give
  the same packets and events;
- after each call everything that follows from it has happened, so `take_packets` and
  `take_events` are complete; what follows from events is for the agent;
- whatever is due by `now` happens before what is asked for: a worker that was stopped
  for long has given up what it held before it uses any of it;
- one thread at a time.
"""

from runtime.rpc.identities import Fork, ForkId, GloballyUniqueId, Node, RRefId
from runtime.rpc.session.calls import Carries
from runtime.rpc.session.composition import Composition
from runtime.rpc.session.events import Payload, Reason


class Session(Composition):
    """One worker's life; `node` is what it is known as, with -1 for no number yet."""

    # Membership.

    def keep(self, *, world_size: int | None, id: int = 0) -> None:  # noqa: A002
        """Become the keeper of a group, which is complete at `world_size` if given."""
        self._members.keep(world_size, id)
        self._settle(self._now)

    def join(self, endpoint: str, *, id: int | None, now: float) -> None:  # noqa: A002
        """Ask the keeper at an endpoint to be a member, with this number if given.

        The end is an `Admitted` or a `Rejected`; until then it is asked again.
        """
        self._come(now)
        self._members.join(endpoint, id, now)
        self._settle(now)

    def leave(self, now: float) -> None:
        """Say goodbye to all members, and stop."""
        self._come(now)
        for channel in self._channels.values():
            channel.goodbye()
        kept = list(self._packets)
        self.stop(now)
        self._packets.extend(kept)

    def stop(self, now: float) -> None:
        """End everything at once; nothing more is sent."""
        if self._stopped:
            return
        for channel in list(self._channels.values()):
            channel.over(Reason.STOPPED)
        self._end(now)
        self._calls.stop(now)
        self._settle(now)
        self._stopped = True
        self._channels.clear()
        self._timers.clear()
        self._packets.clear()

    def members(self) -> tuple[Node, ...]:
        """All members, this worker among them, by number."""
        return self._members.members()

    def finish(self, now: float) -> None:
        """Say that this worker is done; `Finished` comes when all are.

        It goes on to serve the others until then.
        """
        self._come(now)
        self._finishing.done()
        self._settle(now)

    def unfinished(self) -> tuple[str, ...]:
        """The names of those who are not done, as far as it is known here."""
        return self._finishing.unfinished(self.node, self.members())

    # Calls.

    def call(
        self,
        peer: Node,
        payload: Payload,
        *,
        carries: Carries = (),
        deadline: float | None,
        now: float,
        creates: RRefId | None = None,
        target: RRefId | None = None,
    ) -> int:
        """Ask a peer for something; the call ends as `Answered` or `Failed`.

        `carries` are references of this worker, or names of its own values; `creates`
        is a new name, of a value that the peer makes; `target` one that it fetches.
        """
        self._come(now)
        channel = self._channels.get(peer.incarnation)
        largest = self.settings.largest
        if channel is not None and channel.largest is not None:
            largest = channel.largest
        number = self._calls.call(
            peer,
            payload,
            now,
            carries=carries,
            deadline=deadline,
            creates=creates,
            target=target,
            largest=largest,
        )
        if channel is None and (self._stopped or peer != self.node):
            reason = Reason.STOPPED if self._stopped else Reason.LEFT
            self._calls.fail(number, reason, now)
        self._settle(now)
        return number

    def fork_of(self, call: int) -> Fork:
        """The reference of a call that creates; while the call has no end."""
        return self._calls.fork_of(call)

    def reply(
        self,
        peer: Node,
        call: int,
        payload: Payload,
        *,
        carries: Carries = (),
        failed: bool = False,
        now: float,
    ) -> None:
        """Answer a call; to be said once for each `Called`, also if it is cancelled."""
        self._come(now)
        channel = self._channels.get(peer.incarnation)
        largest = self.settings.largest
        if channel is not None and channel.largest is not None:
            largest = channel.largest
        self._calls.reply(
            peer, call, payload, now, carries=carries, failed=failed, largest=largest
        )
        self._settle(now)

    def cancel(self, call: int, now: float) -> None:
        """Give a call up: it ends as `Failed`, unless it has ended."""
        self._come(now)
        self._calls.cancel(call, now)
        self._settle(now)

    # References.

    def new_id(self) -> GloballyUniqueId:
        """A name that nobody gives twice."""
        return self._references.new_id()

    def own(self, rref: RRefId) -> None:
        """One more local handle on a value of this worker."""
        self._references.own(rref)

    def disown(self, rref: RRefId, now: float) -> None:
        """One local handle less; `Freed` when nobody refers to the value any more."""
        self._come(now)
        self._references.disown(rref)
        self._settle(now)

    def drop(self, fork: ForkId, now: float) -> None:
        """Let go of a reference."""
        self._come(now)
        self._references.drop(fork)
        self._settle(now)
<<<<<<< HEAD

    def listed(self) -> list[tuple[RRefId, ForkId]]:
        """Which values of this worker others refer to, and by which references."""
        values = self._references.owners.values
        return [
            (rref, fork)
            for rref, owned in sorted(values.items())
            for fork, user in sorted(owned.forks.items())
            if user != self.node
        ]

    # The world.

    def receive(self, frames: Sequence[Buffer], key: str, now: float) -> None:
        """A packet came from who has a public key, "" where there are no keys."""
        if self._stopped:
            return
        now = self._now = max(now, self._now)
        found = parse(frames)
        if isinstance(found, Flaw):
            self._flaw(found, key)
            return
        if found.kind != _DATA:
            try:
                flaw = self._note(found, frames, key, now)
            except Malformed:
                flaw = Flaw.BODY
            if flaw is not None:
                self._flaw(flaw, key)
            self._settle(now)
            return
        channel = self._channels.get(found.source)
        if channel is None or channel.key != key or found.group != self._members.group:
            self._flaw(self._unknown(found, channel, key), key)
            return
        if found.target != self.node.incarnation:
            self._flaw(Flaw.TARGET, key)
            return
        try:
            messages = channel.data(found, frames, self._decode, now)
        except Malformed:
            self._flaw(Flaw.BODY, key)
            messages = ()
        if isinstance(messages, Flaw):
            self._flaw(messages, key)
            messages = ()
        for message in messages:
            channel.taken += TAKES.get(type(message), CALLS) <= REFERENCES
            self._deliver(channel.node, message, now)
            self._settle(now)
        if not messages:
            self._settle(now)
        self._arm(channel)

    def tick(self, now: float) -> None:
        """Do what is due by now."""
        now = self._now = max(now, self._now)
        timers = self._timers
        while timers and timers[0][0] <= now:
            _, incarnation = heappop(timers)
            channel = self._channels.get(incarnation)
            if channel is not None:
                channel.armed = inf
                if channel.due() <= now:
                    channel.tick(now)
                self._arm(channel)
        self._calls.tick(now)
        self._references.tick(now)
        self._members.tick(now)
        self._settle(now)

    def next_time(self) -> float | None:
        """When `tick` has something to do; it may turn out to be nothing."""
        if self._stopped:
            return None
        due = min(self._calls.due(), self._members.due())
        if self._timers:
            due = min(due, self._timers[0][0])
        unheard = self._references.next_time()
        if unheard is not None:
            due = min(due, unheard)
        return None if due == inf else due

    def take_packets(self) -> list[Packet]:
        """What is to be sent, in order; each packet once."""
        packets = self._packets[:]
        self._packets.clear()
        return packets

    def take_events(self) -> list[Event]:
        """What happened, in order; each event once."""
        events = self._events[:]
        self._events.clear()
        return events

    def counts(self) -> dict[str, int]:
        """How much there is of everything, for debugging."""
        out, come = self._calls.busy()
        channels = self._channels.values()
        return {
            **self._references.counts(),
            "calls": out,
            "called": come,
            "queued": sum(each.queued() for each in channels),
            "resent": self._resent + sum(each.resent for each in channels),
            "garbage": self._garbage.total(),
        }

    def garbage(self) -> dict[str, int]:
        """How many packets were dropped, by what was wrong with them."""
        return {flaw.name: self._garbage[flaw] for flaw in Flaw if self._garbage[flaw]}

    def positions(self) -> dict[Node, tuple[int, ...]]:
        """For each channel, the absolute numbers that `state` leaves out."""
        return {each.node: each.positions() for each in self._channels.values()}

    def state(self) -> Hashable:
        """Everything that this worker knows; times and numbers are relative."""
        now = self._now
        return (
            self._members.state(now),
            self._calls.state(now),
            self._references.state(),
            self._finishing.state(),
            tuple(self._channels[each].picture(now) for each in sorted(self._channels)),
            tuple(sorted(self._numbers.items())),
            self._stopped,
            tuple((body, tuple(map(bytes, tail))) for body, tail in self._loop),
        )

    # How it is put together.

    def _come(self, now: float) -> None:
        """Time went on: what is due by now happens before anything else."""
        if now > self._now:
            self._now = now
        due = self.next_time()
        if due is not None and due <= self._now:
            self.tick(now)

    def _settle(self, now: float) -> None:
        """Do all that follows from what happened."""
        references = self._references
        calls = self._calls
        while True:
            if references.verdicts:
                verdicts = references.verdicts[:]
                references.verdicts.clear()
                for verdict in verdicts:
                    calls.judge(verdict, now)
            elif calls.out or references.out or self._members.out:
                self._send(calls.out, now)
                self._send(references.out, now)
                self._send(self._members.out, now)
            elif self._members.changes or self._members.letters:
                self._change(now)
            elif self._ends:
                self._end(now)
            elif self._loop:
                body, tail = self._loop.popleft()
                written = decode(memoryview(body), tuple(tail))
                self._deliver(self.node, written, now)
            elif self._finishing.status != "RUNNING" or self._finishing.asked():
                if not self._look(now):
                    return
            else:
                return

    def _look(self, now: float) -> bool:
        """Whether anything followed from who is done."""
        finishing = self._finishing
        status = finishing.status
        waiting = any(each.unacknowledged() for each in self._channels.values())
        finishing.look(self.node, self.members(), *self._standing(), waiting)
        moved = bool(finishing.out) or finishing.status != status
        self._send(finishing.out, now)
        return moved

    def _standing(self) -> tuple[tuple[int, int], bool]:
        """Messages sent and received on channels; whether anything is in flight."""
        channels = self._channels.values()
        sent = sum(each.sent for each in channels)
        taken = sum(each.taken for each in channels)
        counts = self._references.counts()
        busy = (
            any(self._calls.busy())
            or any(each.queued() for each in channels)
            or any(counts[each] for each in ("pending", "children", "carriers"))
        )
        return (sent, taken), busy

    def _send(self, out: list[tuple[Node, Message]], now: float) -> None:
        """Give messages to the channels."""
        if not out:
            return
        messages = out[:]
        out.clear()
        for peer, message in messages:
            body, tail = encode(message)
            channel = self._channels.get(peer.incarnation)
            if channel is not None:
                whole = len(body) + size(tail) if tail else len(body)
                channel.send(body, tail, whole, now, TAKES[type(message)] <= REFERENCES)
                self._arm(channel)
            elif peer == self.node:
                self._loop.append((body, [bytes(each) for each in tail]))

    def _deliver(self, peer: Node, message: Message | _Oversized, now: float) -> None:
        """Give a message to its machine."""
        if isinstance(message, _Oversized):
            self._calls.refuse(peer, message.message, now)
            return
        takes = TAKES[type(message)]
        if takes == CALLS:
            self._calls.receive(peer, message, now)
        elif takes == REFERENCES:
            self._references.receive(peer, message, now)
        elif takes == MEMBERS:
            self._members.receive(peer, message, now)
        else:
            self._finishing.receive_with(peer, message, *self._standing())

    def _decode(self, frames: Sequence[Buffer]) -> Message:
        """The message of a DATA packet; its payload is empty if it is too large.

        Raises:
            Malformed: it is none.
        """
        settings = self.settings
        if len(frames) > settings.frames:
            raise Malformed
        body = memoryview(frames[0])[_BODY:]
        message = decode(body, frames[1:], settings.references)
        if len(frames) > 1 and size(frames) > settings.largest:
            return _Oversized(message)  # type: ignore[return-value]  # see _deliver
        return message

    def _note(
        self, found: Head, frames: Sequence[Buffer], key: str, now: float
    ) -> Flaw | None:
        """A packet came that is no message."""
        if len(frames) != 1:
            return Flaw.COUNT
        told = note(found.kind, memoryview(frames[0]).cast("B")[_BODY:])
        members = self._members
        if isinstance(told, Join):
            if told.key != key:
                return Flaw.KEY
            members.note(found.source, told, now)
            return None
        if found.target != self.node.incarnation:
            return Flaw.TARGET
        if found.kind in (Kind.ADMITTED, Kind.REJECTED):
            members.note(found.source, told, now)
            return None
        channel = self._channels.get(found.source)
        if channel is None or channel.key != key or found.group != members.group:
            return self._unknown(found, channel, key)
        if found.kind == Kind.BYE:
            members.left(channel.node)
            return None
        flaw = channel.note(found, told, now)
        self._arm(channel)
        return flaw

    def _unknown(self, found: Head, channel: Channel | None, key: str) -> Flaw:
        group = self._members.group
        if group and found.group != group:
            return Flaw.GROUP
        return Flaw.STRANGER if channel is None else Flaw.KEY

    def _flaw(self, flaw: Flaw, key: str) -> None:
        """A packet is dropped."""
        self._garbage[flaw] += 1
        if flaw in _TOLD:
            source = key if len(self._warned) < _SOURCES else ""
            if (flaw, source) not in self._warned:
                self._warned.add((flaw, source))
                self._events.append(Warned(flaw.value, source))

    def _arm(self, channel: Channel) -> None:
        """See to it that `tick` comes to a channel in time."""
        due = channel.due()
        if due < channel.armed:
            channel.armed = due
            heappush(self._timers, (due, channel.node.incarnation))

    def _proven(self, node: Node) -> float:
        channel = self._channels.get(node.incarnation)
        return -inf if channel is None else channel.proven

    def _change(self, now: float) -> None:
        """Members came, or left: their channels with them; notes are sent."""
        members = self._members
        if self.node != members.node:
            self.node = members.node
            self._references.admit(self.node)
        letters = members.letters[:]
        members.letters.clear()
        for letter in letters:
            start = head(
                letter.kind, members.group, self.node.incarnation, letter.target
            )
            frame = start + of_note(letter.note)
            self._packets.append(Packet(letter.endpoint, [frame]))
        changes = members.changes[:]
        members.changes.clear()
        for change in changes:
            if isinstance(change, Member):
                self._joined(change)
            else:
                self._left(*change, now)

    def _joined(self, member: Member) -> None:
        incarnation = member.node.incarnation
        old = self._channels.get(incarnation)
        if old is not None:
            return
        channel = Channel(
            member.node,
            member.endpoint,
            member.key,
            me=self.node.incarnation,
            group=self._members.group,
            settings=self.settings,
            packets=self._packets,
            ends=self._ends,
            numbers=self._numbers.pop(incarnation, (0, 0)),
        )
        self._channels[incarnation] = channel
        self._references.joined(member.node)
        if self._members.status == "KEEPER":
            # Who is lost is found out by the keeper, so it asks everybody.
            channel.begin(self._now)
            self._arm(channel)

    def _left(self, node: Node, reason: Reason, now: float) -> None:
        channel = self._channels.pop(node.incarnation, None)
        if channel is None:
            return
        self._numbers[node.incarnation] = channel.numbers()
        self._resent += channel.resent
        channel.over(reason)
        self._ends.append(End(node, reason))
        self._ends.append(End(node, None))
        self._end(now)
        self._references.left(node)

    def _end(self, now: float) -> None:
        """Tell the machines of the ends of channels."""
        while self._ends:
            end = self._ends.pop(0)
            if end.reason is None:
                self._references.expired(end.node, now)
            else:
                self._calls.lost(end.node, end.reason, now)
                self._references.lost(end.node, end.reason, now)
                self._finishing.lost(end.node, end.reason, now)
                self._members.lost(end.node, end.reason, now)
=======
>>>>>>> session
