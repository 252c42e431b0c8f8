// SPDX-License-Identifier: MIT OR Apache-2.0
//! DPDKInfo: accepts the memory settings of DPDK.

use castanet_element::prelude::*;

/// Accepts the memory settings of DPDK, and ignores them: packets are in memory that grows by itself.
///
/// # Ports
/// None.
///
/// # Example
/// ```click
/// DPDKInfo(NB_MBUF 65536, MBUF_SIZE 4096);
/// DriverManager(stop);
/// ```
#[derive(Class)]
#[class(name = "DPDKInfo", ports = "0/0", processing = "a/a", packets = "/", workers = replicate, build, handlers)]
pub struct DpdkInfo {
    args: Args,
}

/// Arguments of DPDKInfo. All of them are ignored.
#[derive(Args)]
pub struct Args {
    /// The number of packet buffers.
    #[arg(name = "NB_MBUF", default = 65535)]
    _nb_mbuf: i64,
    /// The number of packet buffers of a processor socket.
    #[arg(keyword, name = "NB_SOCKET_MBUF", default = 0)]
    _nb_socket_mbuf: i64,
    /// The size of a packet buffer in bytes.
    #[arg(keyword, name = "MBUF_SIZE", default = 2048)]
    _mbuf_size: i64,
    /// The number of buffers that each processor keeps for itself.
    #[arg(keyword, name = "MBUF_CACHE_SIZE", default = 256)]
    _mbuf_cache_size: i64,
    /// Prefetch threshold of receive rings.
    #[arg(keyword, name = "RX_PTHRESH", default = 8)]
    _rx_pthresh: i64,
    /// Host threshold of receive rings.
    #[arg(keyword, name = "RX_HTHRESH", default = 8)]
    _rx_hthresh: i64,
    /// Write-back threshold of receive rings.
    #[arg(keyword, name = "RX_WTHRESH", default = 4)]
    _rx_wthresh: i64,
    /// Prefetch threshold of send rings.
    #[arg(keyword, name = "TX_PTHRESH", default = 36)]
    _tx_pthresh: i64,
    /// Host threshold of send rings.
    #[arg(keyword, name = "TX_HTHRESH", default = 0)]
    _tx_hthresh: i64,
    /// Write-back threshold of send rings.
    #[arg(keyword, name = "TX_WTHRESH", default = 0)]
    _tx_wthresh: i64,
    /// The number of descriptors of a ring.
    #[arg(keyword, name = "DEF_RING_NDESC", default = 256)]
    _def_ring_ndesc: i64,
    /// The number of packets in a burst.
    #[arg(keyword, name = "DEF_BURST_SIZE", default = 32)]
    _def_burst_size: i64,
    /// The number of packets in a shared ring.
    #[arg(keyword, name = "RING_SIZE", default = 0)]
    _ring_size: i64,
    /// The number of buffers that each processor keeps for shared rings.
    #[arg(keyword, name = "RING_POOL_CACHE_SIZE", default = 0)]
    _ring_pool_cache_size: i64,
    /// The number of private bytes of a shared ring.
    #[arg(keyword, name = "RING_PRIV_DATA_SIZE", default = 0)]
    _ring_priv_data_size: i64,
    /// A prefix for the names of memory pools.
    #[arg(keyword, name = "MEMPOOL_PREFIX")]
    _mempool_prefix: Option<String>,
}

impl Build for DpdkInfo {
    fn build(args: Args, _: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(DpdkInfo { args })
    }
}

impl Element for DpdkInfo {}

#[handlers]
impl DpdkInfo {
    /// The number of memory pools of DPDK: 0.
    #[read]
    fn pool_count(&self) -> u32 {
        0
    }
}
