#!/usr/bin/env bash
# Installs the Debian packages whose tools the tests compare with or drive; as another user than root only says which.
set -euo pipefail

declare -A package_of=(
    [tshark]=tshark
    [tcptrace]=tcptrace
    [tcpdump]=tcpdump
    [chromium-headless-shell]=chromium-headless-shell
    [curl]=curl
    [groff]=groff-base
    [haproxy]=haproxy
    [ethtool]=ethtool
    [ip]=iproute2
    [iperf3]=iperf3
    [iptables]=iptables
    [nft]=nftables
    [jq]=jq
    [microsocks]=microsocks
    [nginx]=nginx
    [openssl]=openssl
    [prometheus]=prometheus
    [readelf]=binutils
    [setpriv]=util-linux
    [ns]=ns2
    [squid]=squid
    [tinyproxy]=tinyproxy-bin
    [zstd]=zstd
    [xz]=xz-utils
)

missing=()
for tool in "${!package_of[@]}"; do
    command -v "$tool" >/dev/null || missing+=("${package_of[$tool]}")
done
if [ ${#missing[@]} -eq 0 ]; then
    exit 0
fi
if [ "$(id -u)" -ne 0 ]; then
    echo "the tests need these Debian packages: apt-get install ${missing[*]}" >&2
    exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}" </dev/null
