"""How people write the same thing, and which things resemble each other and are two."""

# fmt: off
# Each list is one thing, in different spellings.
SPELLINGS: dict[str, list[list[str]]] = {
    "email": [
        [
            "ann@example.com", "Ann@Example.COM", "mailto:ann@example.com", "<ann@example.com>",
            "ann+news@example.com",
            "ａｎｎ＠ｅｘａｍｐｌｅ．ｃｏｍ", "ann (at) example (dot) com", "ann [at] example.com",
            "ann at example dot com", "mailto:Ann@example.com?subject=hi",
        ],
        ["mia.lopez@gmail.com", "mialopez@googlemail.com", "m.i.a.lopez+x@gmail.com", "MiaLopez@Gmail.com"],
        ["jürgen@müller.de", "Jürgen@xn--mller-kva.de", "jürgen@müller.de"],
        ["иван@почта.рф", "Иван@Почта.рф"],
    ],
    "phone": [
        [
            "+49 170 1234567", "+491701234567", "0049 170 1234567", "+49 (0)170 1234567", "+49-170-123-45-67",
            "tel:+491701234567", "+49 (170) 123 4567", "+٤٩ ١٧٠ ١٢٣٤٥٦٧",
            "＋４９ １７０ １２３４５６７", "+49.170.1234567",
            "0170 1234567", "0170/1234567",
        ],
        [
            "(415) 555-2671", "415-555-2671", "415.555.2671", "+1 415 555 2671", "1-415-555-2671", "4155552671",
            "+1 (415) 555-2671", "001 415 555 2671",
        ],
        ["+44 20 7946 0958", "020 7946 0958", "(020) 7946 0958", "+44 (0)20 7946 0958"],
        ["06 12 34 56 78", "+33 6 12 34 56 78", "06.12.34.56.78", "0612345678"],
        ["555-0100", "phone 5550100", "phone: 555 0100"],
        ["+91 98765 43210", "98765 43210", "+91-9876543210", "0091 98765 43210"],
    ],
    "url": [
        [
            "https://example.com/a/b", "http://example.com/a/b/", "www.example.com/a/b", "HTTPS://Example.com/a/b",
            "example.com/a/b", "https://example.com:443/a/b", "https://www.example.com/a/%62",
            "(https://example.com/a/b)", "<https://example.com/a/b>.",
        ],
        ["https://de.wikipedia.org/wiki/M%C3%BCller", "https://de.wikipedia.org/wiki/Müller"],
        [
            "https://github.com/org/repo.git", "git@github.com:org/repo.git", "https://github.com/org/repo",
            "github.com/org/repo",
        ],
        ["https://example.com/watch?v=1&t=2", "example.com/watch?v=1&t=2"],
        ["s3://bucket/key.txt", "S3://bucket/key.txt"],
        ["http://localhost:8000/docs", "http://LOCALHOST:8000/docs/"],
    ],
    "domain": [
        [
            "example.com", "www.example.com", "https://example.com", "http://www.Example.com/", "EXAMPLE.COM",
            "https://example.com:443/",
        ],
        ["münchen.de", "xn--mnchen-3ya.de", "https://www.xn--mnchen-3ya.de/"],
        ["x.io", "X.IO", "https://x.io/"],
        ["db1.internal", "DB1.internal"],
    ],
    "path": [
        [
            "/var/log/app.log", "'/var/log/app.log'", "`/var/log/app.log`", "file:///var/log/app.log",
            "/var//log/./app.log", "(/var/log/app.log),",
        ],
        ["/api/users", "/api/users/", "“/api/users”", "/api/users."],
        [
            "C:\\Users\\Ann\\notes.txt", "c:/users/ann/notes.txt", "C:\\\\Users\\\\Ann\\\\notes.txt",
            "file:///C:/Users/Ann/notes.txt",
        ],
        ["\\\\server\\share\\plan.docx", "\\\\SERVER\\Share\\plan.docx"],
        ["~/projects/atlas", "~/projects/atlas/"],
        ["src/app/main.py", "./src/app/main.py", "'src/app/main.py'"],
        ["report_final.pdf", "Report_Final.PDF"],
        ["'C:\\Program Files\\App\\a.exe'", "C:\\Program Files\\App\\a.exe"],
    ],
    "uuid": [
        [
            "550e8400-e29b-41d4-a716-446655440000", "550E8400-E29B-41D4-A716-446655440000",
            "{550e8400-e29b-41d4-a716-446655440000}", "550e8400e29b41d4a716446655440000",
            "urn:uuid:550e8400-e29b-41d4-a716-446655440000",
        ],
    ],
    "card": [
        ["4111 1111 1111 1111", "4111111111111111", "4111-1111-1111-1111", "４１１１ １１１１ １１１１ １１１１"],
        ["3782 822463 10005", "378282246310005"],
    ],
    "ip": [
        [
            "10.0.0.1", "010.000.000.001", "10.0.0.1:8080", "http://10.0.0.1/", "http://10.0.0.1:8080/admin",
            "[10.0.0.1]",
        ],
        ["2001:db8::1", "2001:0DB8:0:0:0:0:0:1", "2001:0db8:0000:0000:0000:0000:0000:0001", "[2001:db8::1]"],
        ["192.168.1.5", "::ffff:192.168.1.5"],
    ],
    "cidr": [
        ["10.0.0.0/24", "010.0.0.0/24"],
        ["2001:db8::/32", "2001:0db8::/32"],
    ],
    "mac": [
        ["00:1A:2B:3C:4D:5E", "00-1a-2b-3c-4d-5e", "001a.2b3c.4d5e", "00:1a:2b:3c:4d:5e"],
    ],
    "iban": [
        [
            "DE89 3704 0044 0532 0130 00", "DE89370400440532013000", "de89 3704 0044 0532 0130 00",
            "DE89-3704-0044-0532-0130-00", "IBAN: DE89 3704 0044 0532 0130 00.",
        ],
        ["GB29 NWBK 6016 1331 9268 19", "GB29NWBK60161331926819"],
    ],
    "date": [
        [
            "2024-03-23", "23 March 2024", "March 23rd, 2024", "03/23/2024", "23.3.2024", "2024/3/23", "23.03.2024",
            "the 23rd of March, 2024", "23-Mar-2024", "23. März 2024", "23 de marzo de 2024", "23 марта 2024",
            "2024年3月23日", "20240323", "Mar 23 2024", "23/3/24", "٢٣/٣/٢٠٢٤", "2024.03.23", "23 mars 2024",
            "March 23 2024",
        ],
        ["3 March", "March 3rd", "3rd of March", "Mar 3"],
        ["March 2024", "Mar 2024", "march, 2024"],
    ],
    "time": [
        ["3pm", "15:00", "3 p.m.", "3:00 PM", "15:00:00", "15 Uhr", "15h00", "03:00 pm", "3PM"],
        ["9:05", "09:05", "9:05 am", "9.05 am"],
        ["noon", "12:00", "12pm"],
    ],
    "datetime": [
        ["2024-03-03T15:00:00Z", "2024-03-03 15:00", "2024-03-03T15:00", "2024-03-03T15:00:00+00:00"],
    ],
    "handle": [
        ["@ann_dev", "＠ann_dev", "@Ann_Dev", "(@ann_dev)", "@ann_dev's", "ann_dev"],
        ["@jdoe42", "jdoe42", "JDoe42"],
        ["@ann@mastodon.social", "@Ann@Mastodon.social"],
    ],
    "hashtag": [
        ["#LisbonTrip", "#lisbontrip", "＃lisbontrip", "#lisbontrip!"],
    ],
    "code": [
        [
            "INV-2024-001", "inv-2024-001", "INV 2024 001", "INV/2024/001", "INV_2024_001", "INV–2024–001",
            "#INV-2024-001", "INV2024001",
        ],
        ["INV-2024-001", "INV-2024-1", "inv-2024-0001"],
        [
            "PO#123", "PO-123", "PO 123", "PO123", "po#123", "PO-0123", "purchase order 123", "PO number 123",
            "PO no. 123",
        ],
        ["ABC-123", "abc-123", "ABC123", "ABC 123"],
        [
            "order #4711", "order 4711", "Order no. 4711", "order number 4711", "order: 4711", "#4711",
            "Order #04711", "No. 4711",
        ],
        ["AB12 CDE", "AB12CDE"],
        ["B-MW 1234", "B-MW1234", "B MW 1234"],
        ["SN-8XK2-99QL", "sn-8xk2-99ql"],
        ["LH 1234", "LH1234", "lh-1234"],
        ["account 12345678", "account number: 12345678", "12345678"],
    ],
    "isbn": [
        [
            "978-3-16-148410-0", "9783161484100", "ISBN 978-3-16-148410-0", "ISBN: 9783161484100",
            "ISBN 3-16-148410-X", "isbn 316148410X",
        ],
    ],
    "doi": [
        [
            "10.1000/xyz123", "doi:10.1000/XYZ123", "https://doi.org/10.1000/xyz123", "DOI: 10.1000/xyz123.",
            "http://dx.doi.org/10.1000/xyz123",
        ],
    ],
    "coordinates": [
        ["48.8584, 2.2945", "48.8584,2.2945", "(48.85840, 2.29450)", "48.8584° N, 2.2945° E", "48.8584N 2.2945E"],
        ['48°51\'30"N 2°17\'40"E', '48° 51\' 30" N, 2° 17\' 40" E', "48°51′30″N 2°17′40″E"],
    ],
    "hash": [
        ["9fceb02d0ae598e95dc970b74767f19372d61af8", "9FCEB02D0AE598E95DC970B74767F19372D61AF8"],
        ["9fceb02", "9FCEB02"],
    ],
    "vin": [
        ["1HGCM82633A004352", "1hgcm82633a004352"],
    ],
    "ssn": [
        ["123-45-6789", "123 45 6789"],
        ["QQ 12 34 56 C", "QQ123456C"],
    ],
}

# Each pair is two things, one of which begins, ends or resembles the other.
APART = [
    ("a@x.io", "a.smith@x.io"), ("a@x.io", "a@x.io.uk"), ("a@x.io", "ba@x.io"), ("a@x.io", "a-b@x.io"),
    ("x.io", "a@x.io"), ("a@x.io", "a@xx.io"), ("ann@example.com", "аnn@example.com"), ("a.b@x.io", "ab@x.io"),
    ("a@x.io", "a_@x.io"), ("a@x.io", "a@sub.x.io"), ("10.0.0.1", "10.0.0.12"), ("10.0.0.1", "110.0.0.1"),
    ("10.0.0.1", "10.0.0.1/24"), ("10.0.0.1", "10.0.0.1.5"), ("10.0.0.0/8", "10.0.0.0/24"),
    ("10.0.0.1", "v10.0.0.1"), ("2001:db8::1", "2001:db8::12"), ("INV-100", "INV-1001"), ("INV-100", "INV-100-2"),
    ("INV-100", "INV-100A"), ("INV-100", "XINV-100"), ("INV-100", "A-INV-100"), ("INV-1001", "INV-100-1"),
    ("INV-100", "INV-100.2"), ("INV-100", "INV-100/2"), ("ABC-123", "ABC-1234"), ("ABC-123", "ABD-123"),
    ("ticket #12", "invoice #12"), ("ticket #12", "ticket #123"), ("PO#123", "INV#123"), ("#123", "#1234"),
    ("#123", "#123-45"), ("order 4711", "order 47111"), ("/api/users", "/api/users/42"),
    ("/api/users", "/api/users2"), ("/api/users", "/v2/api/users"), ("/etc/app", "/etc/app.conf"), ("~/a", "~/a/b"),
    ("C:\\a", "C:\\a\\b"), ("https://x.io/a", "https://x.io/a/b"), ("https://x.io/a", "https://x.io/A"),
    ("https://x.io/a", "https://x.io/a?b=1"), ("x.io", "xx.io"), ("x.io", "x.io/a"), ("x.io", "y.x.io"),
    ("v1.2", "v1.2.3"), ("v1.2.3", "v1.2.30"), ("@ann", "@anna"), ("@ann", "@ann_dev"), ("@ann", "@ann.lee"),
    ("@ann", "ann@x.io"), ("#trip", "#trips"), ("@ann", "@ann@m.social"), ("+49 170 1234567", "+49 170 12345678"),
    ("+1 415 555 2671", "+44 415 555 2671"), ("555-0100", "555-0101"), ("415-555-2671", "415-555-26712"),
    ("555-2671", "415-555-2671"), ("4111 1111 1111 1111", "4111 1111 1111 1112"),
    ("DE89 3704 0044 0532 0130 00", "DE89 3704 0044 0532 0130 01"),
    ("550e8400-e29b-41d4-a716-446655440000", "550e8400-e29b-41d4-a716-446655440001"),
    ("00:1A:2B:3C:4D:5E", "00:1A:2B:3C:4D:5F"), ("2024-03-03", "2024-03-04"), ("2024-03-03", "2023-03-03"),
    ("3pm", "3am"), ("3pm", "3:30pm"), ("$100", "€100"), ("$100", "$1000"), ("$1.5", "$15"), ("12 kg", "12 g"),
    ("978-3-16-148410-0", "978-0-306-40615-7"), ("9fceb02", "9fceb02d"), ("123-45-6789", "123-45-6788"),
    ("48.8584, 2.2945", "48.8584, 2.2946"), ("10.1000/xyz", "10.1000/xyz123"),
    ("1HGCM82633A004352", "1HGCM82633A004353"), ("web-1", "web-10"), ("web-1", "web-1-b"), ("node-3", "snode-3"),
    ("report.pdf", "old_report.pdf"), ("report.pdf", "report.pdf.bak"),
]

AROUND = [
    "{}", "Write to {}.", "({})", "[{}],", "“{}”", "'{}'", "«{}»!", "`{}`;", "is it {}?", "{}: yes", "- {}\n- more",
    "邮箱{}。电话", "「{}」です", "<{}>", "see {}—later", "a {} b", "**{}**", "\u200b{}\u200b", "ends with {}…", "{},",
]

# What a search that is not linear would stumble over, repeated.
HOSTILE = [
    "a", "1", "a.", "1.", "a-", "1-", "@", "a@", "@a", "#1", "/", "/a", "\\", "://", "http://", "1 ", "1:", "::",
    "1,", "(1", "+", "+1", "a+", "a_1", "A1-", "INV-", "f1", "é", "中1", "中@a.", "1/", "$1", "1 May ", "May ", "at ",
    "a at b dot ", "no. 1 ", "order ", "1°", "x.io/", "%41", "10.1000/", "DE89 ", "4111 ", "v1.", "\u200b", "á",
    "'/", '"C:\\', "phone ", "AA 1 ", "ISBN ", "978-", "~/", "../", "@a@a.", "a.b/", "git@a:", "\ue000", "ı", "{a",
]
# fmt: on
