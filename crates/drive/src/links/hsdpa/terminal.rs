//! `terminals` of HSDPA.

use pepscope_path::hsdpa::geometry::Point;
use pepscope_path::hsdpa::multipath::Profile;
use pepscope_path::hsdpa::settings::{Bearer, Framing, Placement, Recovery, UserSettings};
use pepscope_path::hsdpa::transport_format::Category;
use pepscope_path::QueueLimit;

use crate::fields::{Fields, Read};
use crate::links::buffer::{read_limit, read_marking, PACKETS_BYTES_OR_FRAMES};

/// Reads terminals that are alike; place in the list = `user` of the traffic:
///
/// | field | unit, range | default | meaning |
/// |---|---|---|---|
/// | `count` | 1-1000 | 1 | so many of them |
/// | `site`, `sector` | 0-18, 0-2 | | a random place in this sector of a cellular radio |
/// | `x_m`, `y_m` | -1e7-1e7 | | or at this place |
/// | `distance_m` | 0-1e6 | | or so far from a single cell |
/// | `mean_sinr_db` | -300-300 | | or with this ratio on average, without shadowing; none of these: anywhere |
/// | `speed_km_h` | 0-1000 | 3 | |
/// | `profile` | `pedestrian-a`, `pedestrian-b`, `indoor-a`, `vehicular-a`, `rural-area`, `single-path`, `unfaded` | `pedestrian-a` | multipath (ITU-R M.1225, TR 25.943) |
/// | `fingers` | 1-100 | 1 | of the Rake receiver |
/// | `doppler_hz` | 0-1e6 | that of the speed | highest Doppler shift |
/// | `category` | `10`, `9`, `7-8`, `1-6` | `10` | of HS-DSCH (TS 25.306) |
/// | `bearer` | `acknowledged`, `unacknowledged`, `dedicated` | `acknowledged` | RLC mode on the shared channel, or a channel of its own for speech |
/// | `frame_payload_bytes`, `frame_header_bits` | 1-3000, 0-1000 | 40, 16; unacknowledged: 24, 8 | of an RLC PDU |
/// | `compressed_header_bytes` | 0-65535 | none; speech: 3 | what PDCP makes of IP and transport headers |
/// | `status_delay_s` | 0-10 | 0.08 | until RLC's repetition waits at the Node-B |
/// | `maximum_transmissions`, `window_frames` | 1-255, 1-4095 | 10, 2047 | of RLC |
/// | `discard_s` | 0.001-1000 | none | age at which RLC gives a packet up (timer based SDU discard) |
/// | `queue_packets`, `queue_bytes`, `queue_frames` | 0-1e9, at most one | 2000 frames | at the Node-B |
/// | `marking` | table | none | `threshold_packets` (0-1e6), `weight` (0-1, default 0.002) |
///
/// # Errors
/// If a field is outside its range or there is more than one place.
pub(super) fn read_terminals(fields: &mut Fields) -> Read<(usize, UserSettings)> {
    let count = fields.integer("count", 1..=1000, 1)? as usize;
    let placement = read_placement(fields)?;
    let user = UserSettings {
        placement,
        speed_km_h: fields.number("speed_km_h", 0.0..=1000.0, 3.0)?,
        profile: fields.choice(
            "profile",
            &[
                ("pedestrian-a", Some(Profile::PedestrianA)),
                ("pedestrian-b", Some(Profile::PedestrianB)),
                ("indoor-a", Some(Profile::IndoorA)),
                ("vehicular-a", Some(Profile::VehicularA)),
                ("rural-area", Some(Profile::RuralArea)),
                ("single-path", Some(Profile::SinglePath)),
                ("unfaded", None),
            ],
        )?,
        fingers: fields.integer("fingers", 1..=100, 1)? as usize,
        doppler_hz: fields.optional_number("doppler_hz", 0.0..=1e6)?,
        category: fields.choice(
            "category",
            &[
                ("10", Category::Ten),
                ("9", Category::Nine),
                ("7-8", Category::SevenAndEight),
                ("1-6", Category::OneToSix),
            ],
        )?,
        bearer: read_bearer(fields)?,
        queue: read_limit(fields, PACKETS_BYTES_OR_FRAMES, QueueLimit::Frames(2000))?,
        marking: read_marking(fields)?,
    };
    Ok((count, user))
}

fn read_placement(fields: &mut Fields) -> Read<Placement> {
    let site = fields.optional_integer("site", 0..=18)?;
    let sector = fields.optional_integer("sector", 0..=2)?;
    let x_m = fields.optional_number("x_m", -1e7..=1e7)?;
    let y_m = fields.optional_number("y_m", -1e7..=1e7)?;
    let distance_m = fields.optional_number("distance_m", 0.0..=1e6)?;
    let mean_sinr_db = fields.optional_number("mean_sinr_db", -300.0..=300.0)?;
    let in_sector = (site.is_some() || sector.is_some())
        .then(|| Placement::InSector { site: site.unwrap_or(0) as usize, sector: sector.unwrap_or(0) as usize });
    let at = (x_m.is_some() || y_m.is_some())
        .then(|| Placement::At(Point { x_m: x_m.unwrap_or(0.0), y_m: y_m.unwrap_or(0.0) }));
    let places = [in_sector, at, distance_m.map(Placement::Distance), mean_sinr_db.map(Placement::MeanSinr)];
    let mut given = places.into_iter().flatten();
    let place = given.next().unwrap_or(Placement::Anywhere);
    if given.next().is_some() {
        let allowed = "one of site and sector, x_m and y_m, distance_m, mean_sinr_db";
        return Err(fields.refuse("place", "two of them", allowed));
    }
    Ok(place)
}

fn read_bearer(fields: &mut Fields) -> Read<Bearer> {
    #[derive(Clone, Copy, PartialEq)]
    enum Kind {
        Acknowledged,
        Unacknowledged,
        Dedicated,
    }
    let kind = fields.choice(
        "bearer",
        &[
            ("acknowledged", Kind::Acknowledged),
            ("unacknowledged", Kind::Unacknowledged),
            ("dedicated", Kind::Dedicated),
        ],
    )?;
    let usual = if kind == Kind::Acknowledged { Framing::default() } else { Framing::speech() };
    if let Some(bytes) = usual.compressed_header_bytes {
        fields.default_integer("compressed_header_bytes", bytes.into());
    }
    let compressed = fields.optional_integer("compressed_header_bytes", 0..=65_535)?.map(|bytes| bytes as u32);
    if kind == Kind::Dedicated {
        return Ok(Bearer::Dedicated { compressed_header_bytes: compressed });
    }
    let framing = Framing {
        payload_bytes: fields.integer("frame_payload_bytes", 1..=3000, usual.payload_bytes.into())? as u32,
        header_bits: fields.integer("frame_header_bits", 0..=1000, usual.header_bits.into())? as u32,
        compressed_header_bytes: compressed,
    };
    if kind == Kind::Unacknowledged {
        return Ok(Bearer::Unacknowledged(framing));
    }
    let usual = Recovery::default();
    let recovery = Recovery {
        status_delay: fields.seconds("status_delay_s", 0.0..=10.0, 0.08)?,
        maximum_transmissions: fields.integer("maximum_transmissions", 1..=255, usual.maximum_transmissions.into())?
            as u8,
        window_frames: fields.integer("window_frames", 1..=4095, usual.window_frames.into())? as u32,
        discard_after: fields.optional_seconds("discard_s", 0.001..=1000.0)?,
    };
    Ok(Bearer::Acknowledged(framing, recovery))
}
