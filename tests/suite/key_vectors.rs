//! Golden vectors of the persisted key format, version 1. A change here re-applies every event that is in flight at the
//! users': it is never the right way to make this test pass.

use idem_runtime::{Key, KeyPart, byte_id};
use uuid::Uuid;

fn assert_key(parts: &[&dyn KeyPart], expected: &str) {
    assert_eq!(Key::of(parts[0], &parts[1..]).unwrap().as_str(), expected);
}

#[test]
fn the_format_is_what_it_always_was() {
    assert_key(&[&"ord_123", &"paid"], "1/s:ord_123/s:paid");
    assert_key(&[&String::from("a/b:c%d~e'f\\g")], "1/s:a%2Fb:c%25d%7Ee%27f%5Cg");
    assert_key(&[&"João \0\n\u{7f}"], "1/s:Jo%C3%A3o %00%0A%7F");
    assert_key(&[&0_u8, &-1_i64, &u64::MAX], "1/i:0/i:-1/i:18446744073709551615");
    assert_key(
        &[&i128::MIN, &u128::MAX],
        "1/i:-170141183460469231731687303715884105728/i:340282366920938463463374607431768211455",
    );
    assert_key(&[&true, &false, &'x', &'é', &'/'], "1/b:true/b:false/c:x/c:%C3%A9/c:%2F");
    assert_key(
        &[&Uuid::from_u128(0x550e_8400_e29b_41d4_a716_4466_5544_0000)],
        "1/u:550e8400-e29b-41d4-a716-446655440000",
    );
    assert_key(&[&byte_id(&[0x00, 0xab, 0xff])], "1/x:00abff");
    // The longest text that is stored as it is, and the shortest that is not.
    let longest = "k".repeat(124);
    assert_key(&[&longest.as_str()], &format!("1/s:{longest}"));
    assert_key(
        &[&"k".repeat(125)],
        "1/s:kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk~98bf81617224bee58b24b2294452daa2278fe17efe2c7d29cf5b8b9349c86816",
    );
    // An escape is not split.
    assert_key(
        &[&format!("{}é{}", "k".repeat(51), "k".repeat(100))],
        "1/s:kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk~b5ff9f5bb5c1c1f56308a442b8794ba112662d2d334dcb20a2f4aeb47253da4c",
    );
}

#[test]
fn the_width_of_an_integer_and_the_owner_of_a_text_do_not_matter() {
    let same: [&dyn KeyPart; 4] = [&7_u8, &7_i16, &7_u128, &std::num::NonZero::new(7_u32).unwrap()];
    for part in same {
        assert_key(&[part], "1/i:7");
    }
    let same: [&dyn KeyPart; 4] = [&"a", &String::from("a"), &Box::<str>::from("a"), &std::borrow::Cow::from("a")];
    for part in same {
        assert_key(&[part], "1/s:a");
    }
}
