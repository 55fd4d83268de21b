"""The words for days, weeks, months and years in a dozen languages: the tables of the package dateparser, which come
from Unicode's CLDR, and what these tables lack."""

import re
import runpy
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from memory.text.folding import UNSPACED_SIGNS, fold
from memory.text.word_lists import wordset

LANGUAGES: Final = ("en", "de", "es", "fr", "pt", "ru", "zh", "ja", "ko", "ar", "it", "nl", "pl", "tr", "uk", "sv")
MONTHS: Final = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
# Stands for a number in a phrase.
NUMBER: Final = "#"

Kind = Literal["days", "weeks", "months", "years", "month", "day", "year", "weekday", "first", "latest"]


class Meaning(NamedTuple):
    """What a phrase says. ``days`` to ``years`` count from today, and are negative in the past: "yesterday" is -1. The
    values of the other kinds are a month (1 to 12), a day of a month, a year, a day of a week (0 is Monday), and 0.
    ``times`` multiplies the number in the phrase. ``short`` is an abbreviation, which needs a number beside it.
    ``weeks`` is the week of a weekday, if the phrase has both."""

    kind: Kind
    value: int = 0
    times: int = 0
    short: bool = False
    weeks: int | None = None


# A word, a number, or one character of a script without spaces.
TOKEN: Final = re.compile(rf"[0-9]+|[{UNSPACED_SIGNS}]|[^\W\d_{UNSPACED_SIGNS}]+")

_UNITS: Final[dict[str, Kind]] = {"day": "days", "week": "weeks", "month": "months", "year": "years"}
_AGO: Final = re.compile(r"(\d+|\\1) (day|week|month|year) ago")
_AHEAD: Final = re.compile(r"in (\d+|\\1) (day|week|month|year)")
_COUNT: Final = r"(\d++[.,]?\d*+)"
# Names of weekdays and "tomorrow" that are also ordinary words: "second", "sixth", "morning".
_AMBIGUOUS: Final = wordset("segunda terca quarta quinta sexta manana morgen")
_ARTICLES: Final = wordset("el la le l il het de")
# One word with several endings in parentheses.
_FORMS: Final = re.compile(r"([^\W\d]+)\(([^\W\d|]+(?:\|[^\W\d|]+)*)\)")

# What the tables lack. Each line has the meaning first: the kind and its value, with "#" the factor of a number.
_MORE: Final = """
days 0: este dia|heute früh|hoje cedo|今日|本日|きょう|今天
days -1: last night|gestern abend|anoche|ontem à noite|昨晚|昨日|きのう|昨夜|어젯밤|البارحة|مبارح|امبارح
days -1: einen tag her|하루 전
days -2: 前天|おととい|그저께|그제|엊그제|أول أمس|أول من أمس|antes de ayer|antier|antes de ontem|avant hier
days -2: два дня назад|منذ يومين|이틀 전
days #-1: #天前|#日前|#日前に|# days back|hace # dias|faz # dias|faz # dia|#일 전|منذ # أيام|منذ # يوم|منذ # يوما
days #-1: قبل # أيام|# дней назад|# суток назад|# días atrás|# dias atrás
days -3: 사흘 전
weeks 0: 这周|这个星期|这星期|本週|這週|이번 주|en esta semana
weeks -1: 上周|上星期|上个星期|上礼拜|上个礼拜|上週|지난 주|저번 주|vergangene woche|vergangenen woche
weeks -1: letzten woche|voriger woche|vorige woche|прошлую неделю|прошлой неделе|прошлой недели|semaine passée
weeks -1: semaine dernière|a week ago|الأسبوع الفائت|الأسبوع المنصرم|неделю назад|il y a une semaine
weeks -1: hace una semana|há uma semana|قبل أسبوع|منذ أسبوع|일주일 전
weeks -2: 上上周|上上个星期|先々週|지지난주|week before last|vorletzte woche|vorletzten woche|منذ أسبوعين
weeks -2: fortnight ago
weeks #-1: # semanas atrás|#周前|#个星期前|#星期前|#个礼拜前|#週間前|#주 전|#주일 전|faz # semanas|# недель назад
weeks #-1: منذ # أسابيع|منذ # أسبوع
months 0: 这个月|本月|이번 달|dieses monats|diesem monat
months -1: 上个月|上月|지난 달|저번 달|letzten monats|vorigen monat|vergangenen monat|прошлый месяц|прошлом месяце
months -1: месяц назад|mois passé|الشهر الفائت|الشهر المنصرم|قبل شهر|منذ شهر|a month ago|한 달 전|il y a un mois
months -1: hace un mes|há um mês
months -2: منذ شهرين|上上个月|先々月
months #-1: # meses atrás|#个月前|#ヶ月前|#か月前|#カ月前|#ケ月前|#箇月前|#달 전|#개월 전|faz # meses
months #-1: # месяца назад|# месяцев назад|منذ # أشهر|منذ # شهرا
years 0: 今年|diesem jahr|heuer|올해|هذا العام|هذه السنة
years -1: 去年|昨年|작년|지난해|지난 해|letzten jahr|letztem jahr|vorigen jahr|voriges jahr|vergangenen jahr
years -1: vergangenes jahr|прошлый год|прошлого года|год назад|العام الماضي|العام الفائت|l'an dernier|an dernier
years -1: l'an passé|année passée|a year ago|قبل سنة|قبل عام|منذ سنة|منذ عام
years -2: 前年|一昨年|おととし|재작년|vorletztes jahr|vorletzten jahr|позапрошлом году|منذ سنتين|منذ عامين
years -2: avant-dernière année
years #-1: # años atrás|# anos atrás|#年前|#년 전|faz # anos|# лет назад|# года назад|منذ # سنوات|منذ # أعوام
month #: #月|#月份|#월
day #: #日|#号|#號|#일
year #: #年|#년|#년도|#年度
weekday 0: 礼拜一|周一|星期一|週一|segunda-feira|na segunda|segunda passada|última segunda|الإثنين|الاثنين
weekday 1: 礼拜二|周二|星期二|週二|terça-feira|na terça|terça passada|última terça|الثلاثاء
weekday 2: 礼拜三|周三|星期三|週三|quarta-feira|na quarta|quarta passada|última quarta|среду|الأربعاء
weekday 3: 礼拜四|周四|星期四|週四|quinta-feira|na quinta|quinta passada|última quinta|الخميس
weekday 4: 礼拜五|周五|星期五|週五|sexta-feira|na sexta|sexta passada|última sexta|пятницу|الجمعة
weekday 5: 礼拜六|周六|星期六|週六|субботу|السبت
weekday 6: 礼拜天|礼拜日|周日|周天|星期日|星期天|週日|الأحد
month 1: январе|янв|كانون الثاني|يناير
month 2: феврале|فبراير|شباط
month 3: марте|مارس|آذار
month 4: апреле|أبريل|إبريل|نيسان
month 5: мае|مايو|أيار
month 6: июне|يونيو|حزيران
month 7: июле|يوليو|تموز
month 8: августе|أغسطس|آب
month 9: сентябре|سبتمبر|أيلول
month 10: октябре|أكتوبر|تشرين الأول
month 11: ноябре|نوفمبر|تشرين الثاني
month 12: декабре|ديسمبر|كانون الأول
"""
_NUMBERS: Final = """
1: one a an ein eine einen einem einer una un uno une um uma один одну 하나 한 واحد
2: two zwei dos deux dois duas два две двух 두 ثنين
3: three drei tres trois três три трёх 세 ثلاثة ثلاث
4: four vier cuatro quatre quatro четыре 네 أربعة أربع
5: five fünf cinco cinq пять 다섯 خمسة خمس
6: six sechs seis шесть 여섯 ستة ست
7: seven sieben siete sept sete семь 일곱 سبعة سبع
8: eight acht ocho huit oito восемь 여덟 ثمانية ثماني ثمان
9: nine neun nueve neuf nove девять 아홉 تسعة تسع
10: ten zehn diez dix dez десять 열 عشرة عشر
11: elf once onze
12: zwölf doce douze doze
13: dreizehn trece treize treze
14: vierzehn catorce quatorze catorze
15: fünfzehn quince quinze
16: sechzehn dieciséis seize
17: siebzehn diecisiete dezessete
18: achtzehn dieciocho dezoito
19: neunzehn diecinueve dezenove
20: zwanzig veinte vingt vinte
"""
_FIRST: Final = (
    "first|very first|erste|erstes|ersten|allererste|allererstes|primera|primer|primeira|première|premier|первый|"
    "первая|первом|первую|первого|第一次|第一个|最初の|初めての|はじめての|첫|첫 번째|처음|أول"
)
_LATEST: Final = (
    "last|latest|most recent|letzte|letztes|letzten|última|último|ultimo|dernière|dernier|последний|последняя|"
    "последнем|последнюю|последней|上次|上一次|最近一次|最后一次|前回の|最後の|直近の|마지막|최근|지난|آخر"
)
_TALKS: Final = (
    "conversation|chat|talk|discussion|gespräch|gesprächs|unterhaltung|conversación|charla|plática|échange|"
    "conversa|bate-papo|papo|разговор|разговоре|разговора|беседа|беседе|беседу|对话|聊天|谈话|交谈|会話|"
    "おしゃべり|やり取り|대화|채팅|محادثة|حديث|حوار|محادثاتنا"
)
_CHINESE_WEEKS: Final = (("上周", -1), ("上星期", -1), ("上个星期", -1), ("上週", -1), ("这周", 0), ("本周", 0))


class Words(NamedTuple):
    """``phrases`` has the phrases by their first word: (the words, meaning), longest first. ``numbers`` has the words
    of numbers."""

    phrases: dict[str, list[tuple[tuple[str, ...], Meaning]]]
    numbers: dict[str, int]


def tokens_of(phrase: str) -> tuple[str, ...]:
    """Return the words of a phrase, folded; ``NUMBER`` stands for a number."""
    parts = [(NUMBER,) if part == NUMBER else TOKEN.findall(part) for part in re.split("(#)", fold(phrase))]
    return tuple(word for part in parts for word in part)


@cache
def date_words() -> Words:
    """Return all phrases. The first call reads the tables, which takes about 50 ms."""
    found: dict[tuple[str, ...], Meaning] = {}
    numbers: dict[str, int] = {}
    for language in LANGUAGES:
        table = _table(language)
        for phrase, meaning in _of_table(table):
            if (tokens := tokens_of(phrase)) and not (len(tokens) == 1 and tokens[0] in _AMBIGUOUS):
                found.setdefault(tokens, meaning)
        numbers |= dict(_numbers(table))
    for phrase, meaning in _more():
        found[tokens_of(phrase)] = meaning
    for line in _NUMBERS.strip().splitlines():
        number, _colon, words = line.partition(":")
        numbers |= {fold(word): int(number) for word in words.split()}
    phrases: dict[str, list[tuple[tuple[str, ...], Meaning]]] = defaultdict(list)
    for tokens, meaning in found.items():
        if tokens and tokens != (NUMBER,):
            phrases[tokens[0]].append((tokens, meaning))
    for choices in phrases.values():
        choices.sort(key=lambda choice: -len(choice[0]))
    return Words(dict(phrases), numbers)


def _table(language: str) -> dict[str, Any]:
    # The package itself is not imported: its parser, which is not used, needs half a second and 13 MB.
    found = find_spec("dateparser")
    assert found is not None
    assert found.origin is not None
    table: dict[str, Any] = runpy.run_path(
        str(Path(found.origin).with_name("data") / "date_translation_data" / f"{language}.py")
    )["info"]
    return table


def _of_table(table: dict[str, Any]) -> Iterator[tuple[str, Meaning]]:
    for value, month in enumerate(MONTHS, start=1):
        for name in table[month]:
            if name[:1].isalpha() and len(name) > 2:
                yield name, Meaning("month", value, short=len(name) < 4)
    for value, weekday in enumerate(WEEKDAYS):
        for name in table[weekday]:
            # Shorter names are abbreviations, and words of other languages.
            if len(tokens_of(name)) > 1 or (len(name) > 4 and name.isalpha()):
                yield name, Meaning("weekday", value)
    for relative in ("relative-type", "relative-type-regex"):
        for says, names in table[relative].items():
            ago, ahead = _AGO.fullmatch(says), _AHEAD.fullmatch(says)
            if match := ago or ahead:
                sign = -1 if ago else 1
                fixed = match[1].isdigit()
                meaning = Meaning(_UNITS[match[2]], sign * int(match[1]) if fixed else 0, times=0 if fixed else sign)
                for name in names:
                    words = name.replace(_COUNT, NUMBER).split()
                    yield from _spelled(words, meaning)


def _spelled(words: list[str], meaning: Meaning) -> Iterator[tuple[str, Meaning]]:
    # "3 d ago" is rarely written, and one letter is easily mistaken.
    if any(len(word) == 1 and word.isalpha() and word.isascii() and word not in ("a", "y") for word in words[1:]):
        return
    if words[0] in _ARTICLES:
        words = words[1:]
    yield " ".join(words).removeprefix("l'"), meaning


def _numbers(table: dict[str, Any]) -> Iterator[tuple[str, int]]:
    for rule in table.get("simplifications", ()):
        for written, number in rule.items():
            if not number.isdigit():
                continue
            if written.isalpha():
                yield fold(written), int(number)
            elif forms := _FORMS.fullmatch(written):
                for form in forms[2].split("|"):
                    yield fold(forms[1] + form), int(number)


def _more() -> Iterator[tuple[str, Meaning]]:
    for line in _MORE.strip().splitlines():
        says, _colon, names = line.partition(": ")
        kind, value = says.split()
        counted = value.startswith(NUMBER)
        meaning = Meaning(
            kind,  # type: ignore[arg-type]
            0 if counted else int(value),
            times=int(value[1:] or 1) if counted else 0,
        )
        for name in names.split("|"):
            yield name, meaning
    for week, weeks in _CHINESE_WEEKS:
        for day, names in enumerate(("一", "二", "三", "四", "五", "六", "日天")):
            for name in names:
                yield week + name, Meaning("weekday", day, weeks=weeks)
    for kind, adjectives in (("first", _FIRST), ("latest", _LATEST)):
        for adjective in adjectives.split("|"):
            for noun in _TALKS.split("|"):
                yield f"{adjective} {noun}", Meaning(kind)  # type: ignore[arg-type]
