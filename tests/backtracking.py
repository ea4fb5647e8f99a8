"""The possible work of a regular expression, computed from its structure.

A pattern becomes an automaton with a state for each character that it reads. If the same text has
two ways through it, backtracking tries both. If a text can repeat one loop, then lead to another
and repeat this one (infinite degree of ambiguity), the work grows with the square of its length,
or faster. Weber and Seidl, On the degree of ambiguity of finite automata, 1991. A search that
starts anywhere is a first state with a loop for every character.

Conservative: a pattern may be reported although the text that causes the work always matches.
"""

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from re import _constants as kinds
from re import _parser as parser

CHARACTER = (kinds.LITERAL, kinds.NOT_LITERAL, kinds.ANY, kinds.IN)
REPEAT = (kinds.MAX_REPEAT, kinds.MIN_REPEAT, kinds.POSSESSIVE_REPEAT)
CATEGORIES = {
    kinds.CATEGORY_DIGIT: r"\d",
    kinds.CATEGORY_NOT_DIGIT: r"\D",
    kinds.CATEGORY_SPACE: r"\s",
    kinds.CATEGORY_NOT_SPACE: r"\S",
    kinds.CATEGORY_WORD: r"\w",
    kinds.CATEGORY_NOT_WORD: r"\W",
}
# Characters of each class are represented by these and by the characters of the pattern.
USUAL = {*map(chr, range(128)), *"é中\u3000\u2028Ａ٣ß"}


@dataclass(frozen=True)
class Guard:
    """The characters, by class, between which a step is possible: (previous, next). sure: the
    step has no other condition, such as a longer assertion."""

    pairs: frozenset[tuple[int, int]]
    sure: bool = True

    def __and__(self, other: "Guard") -> "Guard":
        return Guard(self.pairs & other.pairs, self.sure and other.sure)


@dataclass
class Part:
    """A part of a pattern: its first and last states, and the guards for an empty match."""

    first: list[tuple[int, Guard]] = field(default_factory=list)
    last: list[tuple[int, Guard]] = field(default_factory=list)
    through: list[Guard] = field(default_factory=list)


class Automaton:
    """The automaton of a compiled pattern used by a method, such as "search" or "fullmatch"."""

    def __init__(self, pattern: re.Pattern, method: str) -> None:
        text = pattern.pattern
        flags = pattern.flags & (re.I | re.M | re.S | re.X | re.A)
        if isinstance(text, bytes):
            text, flags = text.decode("latin-1"), flags | re.A
        tree = parser.parse(text, flags)
        flags |= tree.state.flags
        leaves = list(_leaves(tree, flags))
        self._chars = sorted(USUAL | {char for leaf in leaves for char in _named(leaf[:2])})
        self._ascii = flags & re.A
        sets = [self._set(*leaf) for leaf in leaves]
        word, line = self._category(r"\w"), self._category(r"\n")
        alike: dict[tuple[bool, ...], int] = {}
        self._class = {
            char: alike.setdefault(tuple(char in each for each in (*sets, word, line)), len(alike))
            for char in self._chars
        }
        self._every = frozenset(alike.values())
        self._any = Guard(frozenset((a, b) for a in self._every for b in self._every))
        self._word, self._line = self._classes(word), self._classes(line)
        self._sets: list[frozenset[int]] = []
        self._follow: list[list[tuple[int, Guard]]] = []
        before = Part(through=[self._any])
        if method not in ("match", "fullmatch"):
            anywhere = [(self._state(self._every), self._any)]
            self._join(anywhere, anywhere)
            before.last = anywhere
        whole = self._sequence(tree, flags)
        self._join(before.last, whole.first)
        # A match ends the work, except if the whole text must match.
        last = [] if method == "fullmatch" else [each for each in whole.last if each[1].sure]
        self._index(last)

    def grows(self) -> str:
        """Return how the work grows, with a text to repeat; "" if it grows with the length."""
        for name, found in (("exponential", self._two_ways()), ("quadratic", self._two_loops())):
            if found is not None:
                shown = {number: char for char, number in reversed(self._class.items())}
                return f"{name}: {''.join(shown[each] for each in found)!r}"
        return ""

    def _two_ways(self) -> tuple[int, ...] | None:
        """Return a text for which one state leads to itself in two ways."""
        for state, loop in self._loops.items():
            for kind in {self._kind[each] for each in self._sets[state]}:
                end = (state, state, kind, True)
                todo = deque([((state, state, kind, False), ())])
                seen = {todo[0][0]}
                while todo:
                    (one, two, before, split), text = todo.popleft()
                    ones, twos = self._steps(one, before), self._steps(two, before)
                    for char in ones.keys() & twos.keys():
                        ways = Counter(each for each in ones[char] if each in loop)
                        for a in ways:
                            for b in set(twos[char]) & loop:
                                now = split or a != b or (one == two and ways[a] > 1)
                                place = (a, b, self._kind[char], now)
                                if place == end:
                                    return (*text, char)
                                if place not in seen:
                                    seen.add(place)
                                    todo.append((place, (*text, char)))
        return None

    def _two_loops(self) -> tuple[int, ...] | None:
        """Return a text for which one state leads to itself and to another with the same loop."""
        for second, inner in self._loops.items():
            for first, outer in self._loops.items():
                if first != second and second in self._reached[first]:
                    for start in self._sets[first] & self._sets[second]:
                        found = self._pumped(first, outer, second, inner, self._kind[start])
                        if found is not None:
                            return found
        return None

    def _pumped(
        self, first: int, outer: set[int], second: int, inner: set[int], kind: int
    ) -> tuple[int, ...] | None:
        end = (first, second, second, kind)
        # The last element: all possible states of the attempt that has reached the second state.
        todo = deque([((first, first, second, kind, frozenset([second])), ())])
        seen = {todo[0][0]}
        while todo:
            (one, two, three, before, alive), text = todo.popleft()
            ones, twos, threes = (self._steps(each, before) for each in (one, two, three))
            for char in ones.keys() & twos.keys() & threes.keys():
                now = frozenset(
                    to for each in alive for to in self._steps(each, before).get(char, ())
                )
                following = text[0] if text else char
                if self._match(alive, before, char):
                    continue
                for a in set(ones[char]) & outer:
                    for b in set(twos[char]) & self._towards[second]:
                        for c in set(threes[char]) & inner:
                            place = (a, b, c, self._kind[char], now)
                            if place[:4] == end and not self._match(now, end[3], following):
                                return (*text, char)
                            if place not in seen:
                                seen.add(place)
                                todo.append((place, (*text, char)))
        return None

    def _match(self, states: Iterable[int], before: int, char: int) -> bool:
        """Return whether the pattern has matched in one of the states, if a character follows."""
        return any(char in self._ends.get((state, before), ()) for state in states)

    def _index(self, last: list[tuple[int, Guard]]) -> None:
        """Prepare the tables of the searches. Characters before a step are of one kind if no guard
        distinguishes them."""
        states = range(len(self._sets))
        edges = [edge for edges in (*self._follow, last) for edge in edges]
        guards = {guard.pairs for _, guard in edges}
        rows: dict[object, int] = {}
        self._kind = {}
        for char in self._every:
            row = tuple(frozenset(b for a, b in pairs if a == char) for pairs in guards)
            self._kind[char] = rows.setdefault(row, len(rows))
        self._table: dict[tuple[int, int], dict[int, list[int]]] = {}
        for state in states:
            for char in {self._kind[each]: each for each in self._sets[state]}.values():
                steps = self._table.setdefault((state, self._kind[char]), {})
                for to, guard in self._follow[state]:
                    for following in self._sets[to]:
                        if (char, following) in guard.pairs:
                            steps.setdefault(following, []).append(to)
        self._ends: dict[tuple[int, int], set[int]] = {}
        for state, guard in last:
            for char, following in guard.pairs:
                if char in self._sets[state]:
                    self._ends.setdefault((state, self._kind[char]), set()).add(following)
        self._reached = {state: self._reach(state) for state in states}
        self._towards = {
            state: {state, *(each for each in states if state in self._reached[each])}
            for state in states
        }
        self._loops = {
            state: self._reached[state] & self._towards[state]
            for state in states
            if state in self._reached[state]
        }

    def _reach(self, state: int) -> set[int]:
        seen: set[int] = set()
        todo = [state]
        while todo:
            new = {to for to, _ in self._follow[todo.pop()]} - seen
            seen |= new
            todo += new
        return seen

    def _steps(self, state: int, kind: int) -> dict[int, list[int]]:
        return self._table.get((state, kind), {})

    def _state(self, classes: frozenset[int]) -> int:
        self._sets.append(classes)
        self._follow.append([])
        return len(self._sets) - 1

    def _join(self, last: Iterable[tuple[int, Guard]], first: list[tuple[int, Guard]]) -> None:
        for state, before in last:
            self._follow[state] += [(to, before & after) for to, after in first]

    def _then(self, one: Part, two: Part) -> Part:
        self._join(one.last, two.first)
        return Part(
            one.first + [(to, over & guard) for over in one.through for to, guard in two.first],
            two.last + [(to, guard & over) for to, guard in one.last for over in two.through],
            [a & b for a in one.through for b in two.through],
        )

    def _sequence(self, items: Iterable[tuple], flags: int) -> Part:
        part = Part(through=[self._any])
        for kind, value in items:
            part = self._then(part, self._part(kind, value, flags))
        return part

    def _part(self, kind: object, value: object, flags: int) -> Part:
        if kind in CHARACTER:
            state = [(self._state(self._classes(self._set(kind, value, flags))), self._any)]
            return Part(state, list(state))
        if kind is kinds.SUBPATTERN:
            return self._sequence(value[3], (flags | value[1]) & ~value[2])
        if kind is kinds.ATOMIC_GROUP:
            return self._sequence(value, flags)
        if kind is kinds.BRANCH:
            parts = [self._sequence(each, flags) for each in value[1]]
            return Part(
                [each for part in parts for each in part.first],
                [each for part in parts for each in part.last],
                [each for part in parts for each in part.through],
            )
        if kind in REPEAT:
            return self._repeated(kind, *value, flags)
        if kind is kinds.AT:
            return Part(through=[self._at(value, flags)])
        if kind in (kinds.ASSERT, kinds.ASSERT_NOT):
            return self._assertion(kind, *value, flags)
        raise NotImplementedError(kind)

    def _repeated(self, kind: object, least: int, most: int, items: list, flags: int) -> Part:
        out = self._any
        single = self._single(items, flags)
        if kind is kinds.POSSESSIVE_REPEAT and single is not None:
            out = self._guard(lambda _, after: after not in single)
        part = Part(through=[self._any])
        endless = most is kinds.MAXREPEAT
        for _ in range(max(least - 1, 0) if endless else least):
            part = self._then(part, self._sequence(items, flags))
        if endless:
            more = self._sequence(items, flags)
            self._join(more.last, more.first)
            more.last = [(state, guard & out) for state, guard in more.last]
            if least == 0:
                more.through.append(out)
            return self._then(part, more)
        more = Part(through=[self._any])
        for _ in range(most - least):
            more = self._then(self._sequence(items, flags), more)
            more.through.append(out)
        return self._then(part, more)

    def _at(self, place: object, flags: int) -> Guard:
        if place is kinds.AT_BEGINNING and flags & re.M:
            return self._guard(lambda before, _: before in self._line)
        if place is kinds.AT_END:
            return self._guard(lambda _, after: after in self._line)
        if place in (kinds.AT_BOUNDARY, kinds.AT_NON_BOUNDARY):
            word = self._word
            return self._guard(
                lambda before, after: (
                    ((before in word) != (after in word)) == (place is kinds.AT_BOUNDARY)
                )
            )
        return Guard(frozenset())

    def _assertion(self, kind: object, direction: int, items: list, flags: int) -> Part:
        single = self._single(items, flags)
        if single is not None:
            fits = self._every - single if kind is kinds.ASSERT_NOT else single
            return Part(through=[self._guard(lambda *pair: pair[direction > 0] in fits)])
        unsure = Guard(self._any.pairs, sure=False)
        ahead = self._sequence(items, flags).first if direction > 0 else []
        return Part(ahead, [], [unsure])

    def _guard(self, allows) -> Guard:
        return Guard(frozenset(pair for pair in self._any.pairs if allows(*pair)))

    def _single(self, items: list, flags: int) -> frozenset[int] | None:
        """Return the classes of a part that is one character."""
        if len(items) != 1 or items[0][0] not in CHARACTER:
            return None
        return self._classes(self._set(*items[0], flags))

    def _classes(self, chars: set[str]) -> frozenset[int]:
        return frozenset(self._class[char] for char in chars)

    def _category(self, text: str) -> set[str]:
        return {char for char in self._chars if re.fullmatch(text, char, self._ascii)}

    def _set(self, kind: object, value: object, flags: int) -> set[str]:
        """Return the characters that a part of a pattern reads."""
        if kind is kinds.ANY:
            return set(self._chars) - (set() if flags & re.S else {"\n"})
        if kind is kinds.NOT_LITERAL:
            return set(self._chars) - self._set(kinds.LITERAL, value, flags)
        if kind is kinds.CATEGORY:
            return self._category(CATEGORIES[value])
        if kind is kinds.IN:
            found = {char for each in value for char in self._set(*each, flags)}
            return set(self._chars) - found if value[0][0] is kinds.NEGATE else found
        if kind is kinds.NEGATE:
            return set()
        low, high = value if kind is kinds.RANGE else (value, value)
        fold = bool(flags & re.I)
        return {
            char
            for char in self._chars
            for form in ({char, char.lower(), char.upper()} if fold else {char})
            if len(form) == 1 and low <= ord(form) <= high
        }


def _leaves(items: Iterable[tuple], flags: int) -> Iterator[tuple]:
    """Yield the parts of a pattern that read one character, with the flags of their place."""
    for kind, value in items:
        if kind in CHARACTER:
            yield kind, value, flags
        elif kind in REPEAT:
            yield from _leaves(value[2], flags)
        elif kind is kinds.SUBPATTERN:
            yield from _leaves(value[3], (flags | value[1]) & ~value[2])
        elif kind in (kinds.ASSERT, kinds.ASSERT_NOT):
            yield from _leaves(value[1], flags)
        elif kind is kinds.ATOMIC_GROUP:
            yield from _leaves(value, flags)
        elif kind is kinds.BRANCH:
            for each in value[1]:
                yield from _leaves(each, flags)


def _named(leaf: tuple) -> Iterator[str]:
    """Yield the characters in a part, and the neighbours of the ends of a range."""
    kind, value = leaf
    if kind in (kinds.LITERAL, kinds.NOT_LITERAL):
        yield from {chr(value), chr(value).lower()[0], chr(value).upper()[0]}
    elif kind is kinds.RANGE:
        low, high = value
        yield from (chr(n) for n in (max(low - 1, 0), low, high, min(high + 1, 0x10FFFF)))
    elif kind is kinds.IN:
        for each in value:
            yield from _named(each)
