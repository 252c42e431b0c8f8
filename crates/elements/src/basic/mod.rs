// SPDX-License-Identifier: MIT OR Apache-2.0
//! The simplest classes: they pass, drop, copy, mark, print, switch or strip packets.

use castanet_element::{ClassDef, action, element};

pub mod align;
pub mod check_align;
pub mod check_length;
pub mod check_paint;
pub mod clipboard;
pub mod discard;
pub mod error;
pub mod hub;
pub mod idle;
pub mod mark_mac_header;
pub mod message;
pub mod null;
pub mod pad;
pub mod paint;
pub mod paint_tee;
pub mod print;
pub mod pull_null;
pub mod push_null;
pub mod random_bit_errors;
pub mod random_sample;
pub mod resize;
pub mod set_anno_byte;
pub mod set_packet_type;
pub mod set_timestamp;
pub mod static_switch;
pub mod store_data;
pub mod strip;
pub mod switch;
pub mod tee;
pub mod truncate;
pub mod unstrip;

/// The classes of this family.
pub const CLASSES: &[ClassDef] = &[
    action::<align::Align>(),
    action::<check_align::CheckAlign>(),
    action::<check_paint::CheckPaint>(),
    element::<discard::Discard>(),
    element::<error::Error>(),
    element::<clipboard::Clipboard>(),
    element::<hub::Hub>(),
    element::<idle::Idle>(),
    element::<message::Message>(),
    action::<null::Null>(),
    action::<paint::Paint>(),
    action::<paint_tee::PaintTee>(),
    action::<print::Print>(),
    action::<set_timestamp::SetTimestamp>(),
    element::<static_switch::StaticSwitch>(),
    action::<strip::Strip>(),
    element::<switch::Switch>(),
    element::<tee::Tee>(),
    action::<unstrip::Unstrip>(),
    action::<check_length::CheckLength>(),
    action::<mark_mac_header::MarkMacHeader>(),
    action::<pad::Pad>(),
    action::<pull_null::PullNull>(),
    action::<push_null::PushNull>(),
    action::<random_bit_errors::RandomBitErrors>(),
    action::<random_sample::RandomSample>(),
    action::<resize::Resize>(),
    action::<set_anno_byte::SetAnnoByte>(),
    action::<set_packet_type::SetPacketType>(),
    action::<store_data::StoreData>(),
    action::<truncate::Truncate>(),
];
