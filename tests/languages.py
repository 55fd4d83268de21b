"""Facts and questions in eight languages, for tests of recall. The last fact of each language is never asked for."""

FACTS: dict[str, list[tuple[str, str]]] = {
    "en": [
        ("The spare key of the boat house hangs behind the blue barrel.", "Where is the spare key of the boat house?"),
        ("Nadia plays the cello in a quartet on Fridays.", "Which instrument does Nadia play?"),
        ("The dentist moved to the second floor of the town hall.", "Where did the dentist move?"),
        ("The old lawn mower was sold in spring.", ""),
    ],
    "de": [
        (
            "Der Ersatzschlüssel vom Bootshaus hängt hinter dem blauen Fass.",
            "Wo hängt der Ersatzschlüssel vom Bootshaus?",
        ),
        ("Nadia spielt freitags Cello in einem Quartett.", "Welches Instrument spielt Nadia?"),
        ("Die Zahnärztin ist in den zweiten Stock des Rathauses gezogen.", "Wohin ist die Zahnärztin gezogen?"),
        ("Der alte Rasenmäher wurde im Frühling verkauft.", ""),
    ],
    "es": [
        (
            "La llave de repuesto del cobertizo cuelga detrás del barril azul.",
            "¿Dónde está la llave de repuesto del cobertizo?",
        ),
        ("Nadia toca el violonchelo en un cuarteto los viernes.", "¿Qué instrumento toca Nadia?"),
        ("El dentista se mudó al segundo piso del ayuntamiento.", "¿Adónde se mudó el dentista?"),
        ("La vieja cortadora de césped se vendió en primavera.", ""),
    ],
    "ru": [
        ("Запасной ключ от лодочного сарая висит за синей бочкой.", "Где висит запасной ключ от лодочного сарая?"),
        ("Надя по пятницам играет на виолончели в квартете.", "На каком инструменте играет Надя?"),
        ("Стоматолог переехал на второй этаж ратуши.", "Куда переехал стоматолог?"),
        ("Старую газонокосилку продали весной.", ""),
    ],
    "zh": [
        ("船屋的备用钥匙挂在蓝色木桶后面。", "船屋的备用钥匙在哪里？"),
        ("娜佳每个星期五在四重奏里拉大提琴。", "娜佳演奏什么乐器？"),
        ("牙医搬到了市政厅的二楼。", "牙医搬到哪里去了？"),
        ("旧的割草机在春天卖掉了。", ""),
    ],
    "ja": [
        ("ボート小屋の予備の鍵は青い樽の後ろに掛かっている。", "ボート小屋の予備の鍵はどこにありますか？"),
        ("ナディアは金曜日に四重奏でチェロを弾く。", "ナディアはどの楽器を弾きますか？"),
        ("歯医者は市役所の二階に移転した。", "歯医者はどこに移転しましたか？"),
        ("古い芝刈り機は春に売られた。", ""),
    ],
    "ko": [
        ("보트 창고의 예비 열쇠는 파란 통 뒤에 걸려 있다.", "보트 창고의 예비 열쇠는 어디에 있나요?"),
        ("나디아는 금요일마다 사중주단에서 첼로를 연주한다.", "나디아는 어떤 악기를 연주하나요?"),
        ("치과는 시청 이층으로 이사했다.", "치과는 어디로 이사했나요?"),
        ("낡은 잔디깎이는 봄에 팔렸다.", ""),
    ],
    "ar": [
        ("المفتاح الاحتياطي لبيت القوارب معلق خلف البرميل الأزرق.", "أين المفتاح الاحتياطي لبيت القوارب؟"),
        ("نادية تعزف على التشيلو في رباعي كل يوم جمعة.", "على أي آلة تعزف نادية؟"),
        ("انتقل طبيب الأسنان إلى الطابق الثاني من مبنى البلدية.", "إلى أين انتقل طبيب الأسنان؟"),
        ("بيعت جزازة العشب القديمة في الربيع.", ""),
    ],
}
