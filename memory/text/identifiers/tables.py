"""Tables for identifiers: top-level domains, endings of files, months, lengths of IBANs, names of numbered things."""

from typing import Final

from memory.text.word_lists import wordset


def _table(lines: str) -> dict[str, str]:
    """Parse lines such as ``kg: kg kilo kilos`` into a dict from each word to the key of its line."""
    pairs = (line.split(": ", 1) for line in lines.strip().splitlines())
    return {word: meaning for meaning, words in pairs for word in words.split()}


# Top-level domains that are reserved for examples, tests and private networks.
RESERVED: Final = frozenset(
    ("example", "test", "invalid", "local", "localhost", "localdomain", "internal", "intranet", "lan", "onion", "home")
)

FILE_ENDINGS: Final = wordset(
    "7z ai apk asc avi bak bash bat bib blend bmp bz2 c cer cfg cjs clj cmake conf cpp crt cs css csv dart db deb "
    "diff dmg doc dockerfile docx eml env epub ex exe exs flac fs gif go gpg gpx gradle gz h hcl heic hpp hs htm html "
    "ico ics ini ipynb iso jar java jpeg jpg js json jsonl jsx key kml kt less lock log lua m m4a map md mjs mk mkv "
    "mobi mov mp3 mp4 msg msi ndjson npy numbers obj odp ods odt ogg pages parquet patch pdf pem php pkl pl plist png "
    "ppt pptx properties proto ps1 psd pub py pyc r rar raw rb rpm rs rst rtf scala scss service sh sig sql sqlite "
    "stl svg swift swp tar tex tf tfvars tgz tif tiff tmp toml ts tsv tsx txt vcf vue war wav webm webp xls xlsx xml "
    "xz yaml yml zip zsh"
)

_MONTHS: Final = """
1: january jan januar janvier enero gennaio janeiro januari января январь stycznia jänner
2: february feb februar février fevrier febrero febbraio fevereiro februari февраля февраль lutego febr
3: march mar märz maerz marz mars marzo março marco maart марта март marca mrz
4: april apr avril abril aprile апреля апрель kwietnia avr abr
5: may mai mayo maggio maio mei мая май maja
6: june jun juni juin junio giugno junho июня июнь czerwca
7: july jul juli juillet julio luglio julho июля июль lipca
8: august aug août aout agosto augustus августа август sierpnia augusti
9: september sep sept septembre septiembre settembre setembro сентября сентябрь września
10: october oct oktober octobre octubre ottobre outubro okt октября октябрь października
11: november nov novembre noviembre novembro ноября ноябрь listopada
12: december dec dezember décembre decembre diciembre dicembre dezembro dez декабря декабрь grudnia
"""
MONTHS: Final = {name: int(month) for name, month in _table(_MONTHS).items()}

# The length of an IBAN by country (SWIFT registry).
_IBANS: Final = (
    "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 "
    "ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 "
    "LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 "
    "PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 "
    "YE30"
)
IBAN_LENGTHS: Final = {pair[:2].lower(): int(pair[2:]) for pair in _IBANS.split()}

# Names of numbered things, with an underscore for a space. Names on one line have the same meaning.
_NOUNS: Final = """
order: order orders bestellung auftrag commande pedido ordine заказ заказа 订单 訂單 注文
po: purchase_order po
invoice: invoice rechnung facture factura fattura счёт счет 发票 請求書
ticket: ticket tickets
case: case fall vorgang
issue: issue bug
pr: pr pull_request mr merge_request
ref: ref reference aktenzeichen
booking: booking reservation buchung
confirmation: confirmation
tracking: tracking sendung parcel
serial: serial seriennummer s/n sn
account: account acct konto kontonummer a/c
customer: customer client kunde kundennummer
member: member membership mitglied
employee: employee staff personnel
badge: badge
patient: patient mrn
policy: policy police
claim: claim
contract: contract vertrag
licence: license licence permit
passport: passport reisepass
room: room zimmer
locker: locker
build: build
task: task story
batch: batch lot
asset: asset
item: item article artikel sku
student: student matrikel
flight: flight
id: id identifier
pin: pin
transaction: transaction payment txn
request: request
tax: tax steuernummer
user: user
routing: routing sort_code
device: device imei
unit: unit apartment apt suite
table: table
"""
NOUNS: Final = {word.replace("_", " "): noun for word, noun in _table(_NOUNS).items()}

# Words in capitals that do not form a code with the number after them.
CAPITALS: Final = frozenset(word.upper() for word in MONTHS) | wordset(
    "ABOUT AD AGE ALL AM AND ANY APP ARE AS AT BC BUT BY CA CE CET FOR FROM GMT HAD HAS HE HER HIS IF IN IS IT ITS "
    "LESS MORE MY NO NOT OF ON OR OUR OVER PAGE PM SHE SINCE THAN THE TO TOP UNDER UNTIL UP UTC VS WAS WE WITH YOU"
)

# Words in lower case that do not form a code with a hyphen and a number.
SMALL: Final = wordset(
    "a about act age aged all an and around at by chapter circa day early episode fig figure for from game gate grade "
    "in just late level line mid minus month non of on only or over page part per phase plus post pre round row scene "
    "season section set since size stage step sub the to top type under until up week year zone"
)
