"""The names of the months in a dozen languages."""

from typing import Final

_NAMES: Final = """
january jan januar janvier enero gennaio janeiro januari января январь stycznia jänner
february feb februar février fevrier febrero febbraio fevereiro februari февраля февраль lutego febr
march mar märz maerz marz mars marzo março marco maart марта март marca mrz
april apr avril abril aprile апреля апрель kwietnia avr abr
may mai mayo maggio maio mei мая май maja
june jun juni juin junio giugno junho июня июнь czerwca
july jul juli juillet julio luglio julho июля июль lipca
august aug août aout agosto augustus августа август sierpnia augusti
september sep sept septembre septiembre settembre setembro сентября сентябрь września
october oct oktober octobre octubre ottobre outubro okt октября октябрь października
november nov novembre noviembre novembro ноября ноябрь listopada
december dec dezember décembre decembre diciembre dicembre dezembro dez декабря декабрь grudnia
"""
# The number of each month by its names.
MONTHS: Final = {
    name: number for number, names in enumerate(_NAMES.strip().splitlines(), start=1) for name in names.split()
}
