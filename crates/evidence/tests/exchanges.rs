//! Exchanges of connections written as scripts.

use crate::conversation::{record, Conversation, CLIENT, SERVER};
use pepscope_evidence::exchanges::{ExchangeColumns, Kind};
use pepscope_evidence::packets::{flag, mark};

fn kinds(found: &ExchangeColumns) -> Vec<(u8, Kind, bool)> {
    let rows = found.asked.iter().zip(&found.kind).zip(&found.strict);
    rows.map(|((&asked, &kind), &strict)| (asked, Kind::ALL[usize::from(kind)], strict)).collect()
}

fn client_hello(session: usize, names: &[&[u8]]) -> Vec<u8> {
    let list: Vec<u8> = names.iter().flat_map(|name| [&[name.len() as u8], *name].concat()).collect();
    let alpn =
        [&[0, 16][..], &(list.len() as u16 + 2).to_be_bytes(), &(list.len() as u16).to_be_bytes(), &list].concat();
    let mut body = [&[3, 3][..], &[7; 32], &[session as u8], &vec![1; session], &[0, 2, 0x13, 1, 1, 0]].concat();
    body.extend((alpn.len() as u16).to_be_bytes());
    body.extend(alpn);
    record(22, &message(1, &body))
}

fn server_hello(suite: u8) -> Vec<u8> {
    let extensions: &[u8] = if suite == 0x13 { &[0, 6, 0, 43, 0, 2, 3, 4] } else { &[0, 0] };
    let body = [&[3, 3][..], &[9; 32], &[0, suite, 1, 0], extensions].concat();
    record(22, &message(2, &body))
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32).to_be_bytes();
    [&[kind][..], &length[1..], body].concat()
}

/// Change of cipher, and a Finished that cannot be read.
fn finished(content: u8) -> Vec<u8> {
    [record(20, &[1]), record(content, &[0xaa; 53])].concat()
}

fn data(bytes: usize) -> Vec<u8> {
    record(23, &vec![0xdd; bytes])
}

#[test]
fn a_question_is_timed_from_its_last_byte_and_its_answer_from_the_first() {
    let mut talk = Conversation::opened();
    talk.say(CLIENT, 100, &[1; 10]).say(CLIENT, 120, &[2; 20]);
    talk.acknowledge(SERVER, 150).say(SERVER, 180, &[3; 5]).say(SERVER, 190, &[4; 6]);
    talk.say(CLIENT, 400, &[5; 1]);
    let found = talk.exchanges().exchanges;
    assert_eq!(found.asked, [0, 1]);
    assert_eq!((&found.question_ns[..], &found.acknowledged_ns[..]), (&[120, 190][..], &[150, 400][..]));
    assert_eq!((&found.answered_ns[..], &found.question_span_ns[..]), (&[180, 400][..], &[20, 10][..]));
    assert_eq!((&found.question_bytes[..], &found.answer_bytes[..]), (&[30, 11][..], &[11, 1][..]));
    assert_eq!((&found.flight_bytes[..], &found.idle_ns[..]), (&[30, 11][..], &[100, 30][..]));
    assert_eq!(
        (&found.first[..], &found.crossed[..], &found.repeated[..]),
        (&[true; 2][..], &[false; 2][..], &[false; 2][..])
    );
}

#[test]
fn round_trips_of_the_moment_end_with_packets_without_payload() {
    let mut talk = Conversation::opened();
    talk.say(CLIENT, 1_000_000_000, &[1]).round_trip(SERVER, 1_000_000_700, 700);
    talk.say(SERVER, 1_000_000_900, &[2]).round_trip(CLIENT, 1_000_001_000, 100);
    talk.say(CLIENT, 9_000_000_000, &[1]).say_after(SERVER, 9_000_000_300, &[2], 300);
    let found = talk.exchanges();
    assert_eq!(found.exchanges.asked, [0, 1, 0]);
    assert_eq!(found.exchanges.round_trip_ns, [700, 100, -1]);
    assert_eq!((found.round_trips.count, found.round_trips.plain_count), (vec![2, 1], vec![1, 1]));
    assert_eq!((found.round_trips.least_of_all_ns, found.round_trips.least_ns), (vec![300, 100], vec![700, 100]));
    assert_eq!(found.round_trips.handshake_ns, [10, 10]);
}

#[test]
fn data_that_cross_are_no_answer() {
    let mut talk = Conversation::opened();
    talk.say(SERVER, 100, &[1; 9]).cross(CLIENT, 110, &[2; 4], 0).say(SERVER, 300, &[3; 8]).say(CLIENT, 400, &[4]);
    let found = talk.exchanges().exchanges;
    // The server answers the four bytes; its first nine stay without an answer, and the eight are heard out.
    assert_eq!(found.asked, [0, 1]);
    assert_eq!((&found.question_ns[..], &found.question_bytes[..]), (&[110, 300][..], &[4, 8][..]));
    assert_eq!(found.crossed, [false, false]);
    let mut talk = Conversation::opened();
    talk.say(SERVER, 100, &[1; 9]).cross(CLIENT, 110, &[2; 4], 0).cross(SERVER, 120, &[3; 8], 0).say(CLIENT, 400, &[4]);
    let found = talk.exchanges().exchanges;
    assert_eq!((&found.asked[..], &found.crossed[..]), (&[1][..], &[true][..]));
}

#[test]
fn what_was_sent_again_or_came_late_is_not_timed() {
    let mut talk = Conversation::opened();
    talk.say(CLIENT, 100, &[1; 10]).again(CLIENT, 300, 0, 10, mark::RETRANSMISSION).say(SERVER, 400, &[3; 5]);
    talk.say(CLIENT, 500, &[1; 10]).skip(SERVER, 7).say(SERVER, 600, &[3; 5]);
    talk.say(CLIENT, 700, &[1; 10]).again(CLIENT, 710, 20, 10, mark::DUPLICATE).say(SERVER, 800, &[3; 5]);
    let found = talk.exchanges().exchanges;
    let asked: Vec<_> = found.asked.iter().zip(&found.repeated).filter(|row| *row.0 == 0).map(|row| *row.1).collect();
    assert_eq!(asked, [true, true, false]);
}

#[test]
fn a_question_whose_end_was_not_captured_is_not_timed() {
    let mut talk = Conversation::opened();
    talk.say(CLIENT, 100, &[1; 10]).skip(CLIENT, 5).say(SERVER, 400, &[3; 5]);
    talk.say(CLIENT, 500, &[1; 10]).skip(CLIENT, 1).say(SERVER, 600, &[3; 5]);
    let found = talk.exchanges().exchanges;
    assert_eq!((&found.asked[..], &found.repeated[..]), (&[0, 1, 0][..], &[true, true, false][..]));
}

#[test]
fn keep_alives_probes_and_resets_are_no_questions() {
    let mut talk = Conversation::opened();
    talk.say(CLIENT, 100, &[1; 10]).say(SERVER, 150, &[2; 10]).again(CLIENT, 9000, 9, 1, mark::KEEP_ALIVE);
    talk.acknowledge(SERVER, 9050).say(CLIENT, 9100, &[3]);
    talk.flags = flag::RST | flag::ACK;
    talk.say(SERVER, 9200, &[4]);
    let found = talk.exchanges().exchanges;
    assert_eq!((&found.asked[..], &found.question_ns[..]), (&[0, 1][..], &[100, 150][..]));
}

#[test]
fn handshakes_of_tls_1_3_are_strict_and_tickets_are_not() {
    let mut talk = Conversation::opened();
    talk.say(CLIENT, 10, &client_hello(32, &[b"h2"]));
    talk.say(SERVER, 20, &[server_hello(0x13), record(20, &[1]), data(40), data(900)].concat());
    talk.say(CLIENT, 30, &finished(23)).say(SERVER, 40, &data(240)).say(CLIENT, 50, &data(70));
    talk.say(SERVER, 60, &data(2000)).say(CLIENT, 70, &data(9 + 17)).say(SERVER, 80, &data(3000));
    let found = talk.exchanges().exchanges;
    assert_eq!(
        kinds(&found),
        [
            (0, Kind::TlsHello, true),
            (1, Kind::TlsFinished, true),
            (0, Kind::TlsControl, false),
            (1, Kind::TlsControl, false),
            (0, Kind::TlsData, false),
            (1, Kind::TlsControl, false),
            (0, Kind::TlsControl, false),
        ]
    );
}

#[test]
fn handshakes_of_tls_1_2_are_strict_up_to_the_servers_finished() {
    let flight = [server_hello(0xc0), record(22, &message(11, &[5; 700])), record(22, &message(14, &[]))].concat();
    let mut talk = Conversation::opened();
    talk.say(CLIENT, 10, &client_hello(0, &[b"http/1.1"])).say(SERVER, 20, &flight);
    talk.say(CLIENT, 30, &[record(22, &message(16, &[6; 60])), finished(22)].concat());
    talk.say(SERVER, 40, &finished(22)).say(CLIENT, 50, &data(9 + 24)).say(SERVER, 60, &data(900));
    let found = talk.exchanges().exchanges;
    assert_eq!(
        kinds(&found),
        [
            (0, Kind::TlsHello, true),
            (1, Kind::TlsFinished, true),
            (0, Kind::TlsFinished, true),
            (1, Kind::TlsSecondFinished, false),
            (0, Kind::TlsData, false),
        ]
    );
    // False Start: the request left with the client's Finished, so the server's Finished is not what answers it.
    let mut talk = Conversation::opened();
    talk.say(CLIENT, 10, &client_hello(0, &[])).say(SERVER, 20, &flight);
    talk.say(CLIENT, 30, &[record(22, &message(16, &[6; 60])), finished(22), data(90)].concat());
    talk.say(SERVER, 40, &finished(22));
    assert_eq!(kinds(&talk.exchanges().exchanges)[2], (0, Kind::TlsFinished, false));
}

#[test]
fn a_hello_that_is_asked_for_again_and_early_data_are_recognised() {
    let mut talk = Conversation::opened();
    talk.say(CLIENT, 10, &client_hello(32, &[])).say(SERVER, 20, &[server_hello(0x13), record(20, &[1])].concat());
    talk.say(CLIENT, 30, &[record(20, &[1]), client_hello(32, &[])].concat());
    talk.say(SERVER, 40, &[server_hello(0x13), data(900)].concat()).say(CLIENT, 50, &finished(23));
    assert_eq!(
        kinds(&talk.exchanges().exchanges),
        [(0, Kind::TlsHello, true), (1, Kind::TlsHello, true), (0, Kind::TlsHello, true), (1, Kind::TlsFinished, true)]
    );
    let mut talk = Conversation::opened();
    talk.say(CLIENT, 10, &[client_hello(32, &[]), data(100)].concat()).say(SERVER, 20, &server_hello(0x13));
    assert_eq!(kinds(&talk.exchanges().exchanges), [(0, Kind::TlsHello, false)]);
}

#[test]
fn records_are_found_again_behind_what_was_cut_off() {
    let mut talk = Conversation::opened();
    talk.kept_bytes = 40;
    talk.say(CLIENT, 10, &client_hello(32, &[b"h2"])).say(SERVER, 20, &[server_hello(0x13), data(900)].concat());
    talk.say(CLIENT, 30, &finished(23)).say(SERVER, 40, &data(700)).say(CLIENT, 50, &data(70));
    talk.say(SERVER, 60, &data(700)).say(CLIENT, 70, &data(80));
    assert_eq!(
        kinds(&talk.exchanges().exchanges),
        [
            (0, Kind::TlsHello, true),
            (1, Kind::TlsFinished, true),
            (0, Kind::TlsControl, false),
            (1, Kind::TlsControl, false),
            (0, Kind::TlsData, false),
            (1, Kind::TlsData, false),
        ]
    );
}

#[test]
fn a_finished_of_tls_1_2_is_told_by_its_answer_where_it_was_cut_off() {
    let flight = [server_hello(0xc0), record(22, &message(11, &[5; 700])), record(22, &message(14, &[]))].concat();
    let last = [record(20, &[1]), record(22, &[0xaa; 40])].concat();
    let talk_of = |behind: &[u8]| {
        let mut talk = Conversation::opened();
        talk.kept_bytes = 30;
        talk.say(CLIENT, 10, &client_hello(32, &[b"h2"])).say(SERVER, 20, &flight);
        talk.say(CLIENT, 30, &[&record(22, &message(16, &[6; 33]))[..], &last, behind].concat());
        talk.say(SERVER, 40, &last).say(CLIENT, 50, &data(240)).say(SERVER, 60, &data(900));
        kinds(&talk.exchanges().exchanges)
    };
    let wanted = |strict| {
        [
            (0, Kind::TlsHello, true),
            (1, Kind::TlsFinished, true),
            (0, Kind::TlsFinished, strict),
            (1, Kind::TlsSecondFinished, false),
            (0, Kind::TlsData, false),
        ]
    };
    assert_eq!(talk_of(&[]), wanted(true));
    assert_eq!(talk_of(&data(90)), wanted(false));
}

#[test]
fn words_that_were_cut_off_are_unread() {
    let kinds_of = |kept_bytes: usize, question: &[u8], answer: &[u8]| {
        let mut talk = Conversation::opened();
        talk.kept_bytes = kept_bytes;
        talk.say(CLIENT, 10, question).say(SERVER, 20, answer);
        kinds(&talk.exchanges().exchanges)
    };
    let hello = [client_hello(32, &[b"h2"]), [server_hello(0x13), data(900)].concat()];
    assert_eq!(kinds_of(6, &hello[0], &hello[1]), [(0, Kind::TlsHello, true)]);
    assert_eq!(kinds_of(4, &hello[0], &hello[1]), [(0, Kind::Unread, false)]);
    assert_eq!(kinds_of(0, b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n"), [(0, Kind::Unread, false)]);
    // Whole words of a byte, as of terminals, were read.
    assert_eq!(kinds_of(4, b"a", b"a"), [(0, Kind::Turn, false)]);
    assert_eq!(kinds_of(4, b"a", &[b'x'; 40]), [(0, Kind::Turn, false)]);
}

/// Connections of TLS 1.2, of a resumed session of that, and of TLS 1.3, of which so many bytes of each packet were kept.
fn tls_connections(kept_bytes: usize) -> Vec<Vec<(u8, Kind, bool)>> {
    let cut = || {
        let mut talk = Conversation::opened();
        talk.kept_bytes = kept_bytes;
        talk
    };
    let hello = client_hello(32, &[b"http/1.1"]);
    let flight = [server_hello(0xc0), record(22, &message(11, &[5; 700])), record(22, &message(14, &[]))].concat();
    let mut full = cut();
    full.say(CLIENT, 10, &hello).say(SERVER, 20, &flight);
    full.say(CLIENT, 30, &[record(22, &message(16, &[6; 33])), finished(22)].concat()).say(SERVER, 40, &finished(22));
    let mut resumed = cut();
    resumed.say(CLIENT, 10, &hello).say(SERVER, 20, &[server_hello(0xc0), finished(22)].concat());
    resumed.say(CLIENT, 30, &finished(22));
    let mut tls_1_3 = cut();
    tls_1_3.say(CLIENT, 10, &hello);
    tls_1_3.say(SERVER, 20, &[server_hello(0x13), record(20, &[1]), data(40), data(900)].concat());
    tls_1_3.say(CLIENT, 30, &finished(23)).say(SERVER, 40, &data(240));
    let mut every = [full, resumed, tls_1_3];
    for talk in &mut every {
        talk.say(CLIENT, 70, &data(300)).say(SERVER, 80, &data(900)).say(CLIENT, 90, &data(310)).say(
            SERVER,
            99,
            &data(900),
        );
    }
    every.map(|talk| kinds(&talk.exchanges().exchanges)).into()
}

#[test]
fn handshakes_are_no_application_data_however_short_records_were_cut() {
    let whole = tls_connections(256);
    for kept_bytes in 5..60 {
        for (connection, (found, wanted)) in tls_connections(kept_bytes).iter().zip(&whole).enumerate() {
            assert_eq!(found.len(), wanted.len());
            for (place, (&(_, found, _), &(_, wanted, _))) in found.iter().zip(wanted).enumerate() {
                // What is left out says nothing wrong.
                let is_right = found == wanted || found == Kind::TlsControl;
                assert!(is_right, "{kept_bytes} bytes, {connection}, {place}: {found:?}, not {wanted:?}");
            }
        }
    }
}

#[test]
fn connections_that_were_met_late_are_told_by_their_records() {
    let mut talk = Conversation::met_late();
    talk.say(CLIENT, 10, &data(100)).say(SERVER, 20, &data(700)).say(CLIENT, 30, &data(100));
    assert_eq!(kinds(&talk.exchanges().exchanges), [(0, Kind::TlsData, false), (1, Kind::TlsData, false)]);
    let mut talk = Conversation::met_late();
    talk.say(CLIENT, 10, b"MAIL FROM:<a@example>\r\n").say(SERVER, 20, b"250 2.1.0 Ok\r\n");
    assert_eq!(kinds(&talk.exchanges().exchanges), [(0, Kind::Command, false)]);
}

#[test]
fn a_hello_behind_words_that_wait_for_nothing_is_one() {
    let mut talk = Conversation::opened();
    talk.say(SERVER, 10, &[9; 104]).say(CLIENT, 20, &[8; 36]).say(CLIENT, 21, &client_hello(32, &[]));
    talk.say(SERVER, 30, &[server_hello(0x13), data(900)].concat()).say(CLIENT, 40, &finished(23));
    assert_eq!(
        kinds(&talk.exchanges().exchanges),
        [(1, Kind::Greeting, false), (0, Kind::TlsHello, true), (1, Kind::TlsFinished, true)]
    );
    // A proxy's answer comes before TLS.
    let mut talk = Conversation::opened();
    talk.say(CLIENT, 20, b"CONNECT a:443 HTTP/1.1\r\n\r\n").say(CLIENT, 21, &client_hello(32, &[]));
    talk.say(SERVER, 30, b"HTTP/1.1 407 No\r\n\r\n").say(CLIENT, 40, &client_hello(32, &[]));
    talk.say(SERVER, 50, &server_hello(0x13));
    assert_eq!(kinds(&talk.exchanges().exchanges)[0], (0, Kind::HttpRequest, false));
}

#[test]
fn plain_protocols_are_told_by_their_first_bytes() {
    let mut talk = Conversation::opened();
    talk.say(CLIENT, 10, b"GET / HTTP/1.1\r\n\r\n").say(SERVER, 20, b"HTTP/1.1 200 OK\r\n\r\n");
    talk.say(CLIENT, 30, b"GET /2 HTTP/1.1\r\n\r\n").say(SERVER, 40, b"\x00\x01\x02");
    assert_eq!(
        kinds(&talk.exchanges().exchanges),
        [(0, Kind::HttpRequest, true), (1, Kind::HttpNextRequest, false), (0, Kind::Turn, false)]
    );
    let mut talk = Conversation::opened();
    talk.say(SERVER, 10, b"220 mail ESMTP\r\n").say(CLIENT, 20, b"EHLO me\r\n").say(SERVER, 30, b"250 mail\r\n");
    talk.say(CLIENT, 40, b"STARTTLS\r\n").say(SERVER, 50, b"220 go\r\n").say(CLIENT, 60, &client_hello(0, &[]));
    talk.say(SERVER, 70, &server_hello(0x13));
    assert_eq!(
        kinds(&talk.exchanges().exchanges),
        [
            (1, Kind::Greeting, true),
            (0, Kind::Command, false),
            (1, Kind::Command, false),
            (0, Kind::Command, false),
            (1, Kind::Turn, false),
            (0, Kind::TlsHello, true)
        ]
    );
    let mut talk = Conversation::opened();
    talk.say(SERVER, 10, b"SSH-2.0-a\r\n").say(CLIENT, 20, b"SSH-2.0-b\r\n").say(SERVER, 30, &[0; 40]);
    assert_eq!(kinds(&talk.exchanges().exchanges), [(1, Kind::Greeting, false), (0, Kind::Turn, false)]);
}

/// RFC 7540, section 3.2: the server answers what it upgraded without waiting for the client's preface.
#[test]
fn control_frames_of_http_2_in_clear_ask_nothing() {
    let frame = |kind: u8, body: &[u8]| [&[0, 0, body.len() as u8, kind, 0, 0, 0, 0, 1][..], body].concat();
    let (settings, headers) = (frame(4, &[]), frame(1, &[0x82]));
    let mut talk = Conversation::opened();
    talk.say(CLIENT, 100, b"GET / HTTP/1.1\r\nUpgrade: h2c\r\n\r\n");
    talk.say(SERVER, 200, b"HTTP/1.1 101 Switching Protocols\r\n\r\n");
    talk.say(CLIENT, 210, &[b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &settings[..]].concat());
    talk.say(SERVER, 220, &headers);
    talk.say(CLIENT, 230, &headers).say(SERVER, 330, &headers);
    talk.say(CLIENT, 340, &settings).say(SERVER, 350, &headers);
    assert_eq!(
        kinds(&talk.exchanges().exchanges),
        [
            (0, Kind::HttpRequest, true),
            (1, Kind::Turn, false),
            (0, Kind::Http2Control, false),
            (1, Kind::Turn, false),
            (0, Kind::Turn, false),
            (1, Kind::Http2Control, false),
            (0, Kind::Http2Control, false),
        ]
    );
}

#[test]
fn a_hello_that_begins_in_the_syn_is_answered_by_a_hello() {
    let hello = client_hello(32, &[b"h2"]);
    let flight = [server_hello(0x13), record(20, &[1]), data(900)].concat();
    let (in_syn, rest) = hello.split_at(40);
    let mut talk = Conversation::opened_fast(in_syn);
    talk.say(CLIENT, 1, rest).say(SERVER, 100, &flight).say(CLIENT, 110, &finished(23));
    let wanted = [(0, Kind::TlsHello, true), (1, Kind::TlsFinished, true)];
    assert_eq!(kinds(&talk.exchanges().exchanges), wanted);
    let mut talk = Conversation::opened_fast(&hello);
    talk.say(SERVER, 100, &flight).say(CLIENT, 110, &finished(23));
    assert_eq!(kinds(&talk.exchanges().exchanges), wanted[1..], "nothing was asked behind the handshake");
}
