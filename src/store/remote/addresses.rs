//! Public and private addresses: a server must not lead this program into the network of its own machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// The message about a host that has private addresses alone.
pub(super) const PRIVATE_ADDRESS: &str = "the name of the host stands for a private address";

/// Resolves names only to public addresses, so that a server cannot make this machine connect to its own network.
pub(super) struct PublicNames {
    /// The hosts of proxies, which may have private addresses.
    pub(super) proxies: Arc<[String]>,
    /// Private addresses that the names of the store's own server may stand for, beside that of this machine for
    /// `localhost`; `None` for the names that redirects lead to.
    pub(super) allowed: Option<Vec<IpAddr>>,
}

impl Resolve for PublicNames {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str();
        let is_proxy = self.proxies.iter().any(|it| it.eq_ignore_ascii_case(host));
        let is_this_machine = host.eq_ignore_ascii_case("localhost");
        let allowed = self.allowed.clone();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let is_allowed = |found: &SocketAddr| {
                let address = found.ip();
                is_proxy
                    || is_public(address)
                    || allowed.as_ref().is_some_and(|allowed| {
                        // The user has named this machine.
                        allowed.contains(&address) || is_this_machine && address.is_loopback()
                    })
            };
            let public: Vec<SocketAddr> = found.filter(is_allowed).collect();
            if public.is_empty() {
                return Err(Box::from(std::io::Error::other(PRIVATE_ADDRESS)));
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

/// Whether `address` is that of a machine that anyone can reach.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, ..] = v4.octets();
            !(v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_unspecified()
                || v4.is_broadcast()
                || v4.is_multicast()
                || a == 0
                // Addresses that providers share among their customers.
                || (a == 100 && b & 0xc0 == 64)
                // Addresses for measuring the devices of a network.
                || (a == 198 && b & 0xfe == 18))
        }
        IpAddr::V6(v6) => {
            if let Some(v4) = v4_within(v6) {
                return is_public(IpAddr::V4(v4));
            }
            !(v6.is_loopback()
                || v6.is_unspecified()
                || v6.is_multicast()
                || v6.is_unique_local()
                || v6.is_unicast_link_local())
        }
    }
}

/// The address that `v6` leads to in a network of version 4: written in version 6, translated by a gateway (RFC 6052),
/// or through a tunnel (RFC 3056).
fn v4_within(v6: Ipv6Addr) -> Option<Ipv4Addr> {
    match v6.octets() {
        [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d]
        | [0x20, 0x02, a, b, c, d, ..] => Some(Ipv4Addr::new(a, b, c, d)),
        _ => v6.to_ipv4_mapped(),
    }
}
