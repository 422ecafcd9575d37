/**
 * Decides which IP addresses are public. Requests to customer-named addresses use only these: all
 * others are internal (loopback, private networks, cloud metadata) or lead to internal ones by
 * translation (NAT64, 6to4).
 */
import { BlockList, isIPv4, isIPv6, SocketAddress } from "node:net";

/** IANA's special-purpose registry for IPv4, plus multicast and reserved ranges. */
const closedIpv4 = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.31.196.0/24",
  "192.52.193.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "192.175.48.0/24",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
];

/**
 * The range that IANA opened for global unicast. All other IPv6 ranges are blocked: mapped and
 * translated IPv4, unique local, link local, multicast, and future ones.
 */
const openIpv6 = ["2000::/3"];

/**
 * Special ranges within {@link openIpv6}: Teredo and protocol assignments, documentation, 6to4,
 * AS112.
 */
const closedIpv6 = [
  "2001::/23",
  "2001:db8::/32",
  "2002::/16",
  "2620:4f:8000::/48",
  "3fff::/20",
] as const;

const ranges = {
  closedIpv4: blockList(closedIpv4, "ipv4"),
  openIpv6: blockList(openIpv6, "ipv6"),
  closedIpv6: blockList(closedIpv6, "ipv6"),
};

/**
 * Whether an IP address, as text without brackets, is on the public internet. False for anything
 * else, including addresses with a zone (`fe80::1%eth0`).
 */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !ranges.closedIpv4.check(address, "ipv4");
  if (!isIPv6(address) || address.includes("%")) return false;
  return ranges.openIpv6.check(address, "ipv6") && !ranges.closedIpv6.check(address, "ipv6");
}

/**
 * The canonical spelling of an address, for comparison.
 *
 * @throws if the text is no address
 */
export function canonicalAddress(address: string): string {
  const family = isIPv4(address) ? "ipv4" : "ipv6";
  return new SocketAddress({ address, family }).address;
}

function blockList(networks: readonly string[], family: "ipv4" | "ipv6"): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", bits] = network.split("/");
    list.addSubnet(address, Number(bits), family);
  }
  return list;
}
