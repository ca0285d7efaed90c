/* What one core can do at least: read(), decode Ethernet/IPv4/TCP, one flow table, retransmissions and RTT.
 *
 * The yardstick for `decode`: no other link layer, no options but what costs nothing, no output but totals. Reads pcap
 * of either time unit in this machine's byte order. Usage: c_limit FILE
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER = 1 << 20 };

struct side {
    uint32_t next, timed_end;
    int64_t timed_ns; /* one segment is timed at a time, as in RFC 6298 without timestamps; 0 if none */
    uint8_t started;
};

struct flow {
    uint32_t low_address, high_address, ports;
    uint32_t used;
    struct side side[2];
};

static struct flow *table;
static size_t capacity = 1 << 16, count;

static size_t slot_of(const struct flow *flows, size_t size, uint32_t a, uint32_t b, uint32_t ports)
{
    uint64_t hash = ((uint64_t)a << 32 | b) * 0x9E3779B97F4A7C15u ^ (uint64_t)ports * 0xC2B2AE3D27D4EB4Fu;
    size_t at = (hash ^ hash >> 29) & (size - 1);
    while (flows[at].used
           && (flows[at].low_address != a || flows[at].high_address != b || flows[at].ports != ports))
        at = (at + 1) & (size - 1);
    return at;
}

static struct flow *find(uint32_t a, uint32_t b, uint32_t ports)
{
    if (count * 2 > capacity) {
        struct flow *larger = calloc(capacity * 2, sizeof *larger);
        if (!larger)
            exit(2);
        for (size_t i = 0; i < capacity; i++)
            if (table[i].used)
                larger[slot_of(larger, capacity * 2, table[i].low_address, table[i].high_address, table[i].ports)] =
                    table[i];
        free(table);
        table = larger;
        capacity *= 2;
    }
    struct flow *flow = &table[slot_of(table, capacity, a, b, ports)];
    if (!flow->used) {
        flow->used = 1;
        flow->low_address = a;
        flow->high_address = b;
        flow->ports = ports;
        count++;
    }
    return flow;
}

static uint32_t get32(const uint8_t *p) { return (uint32_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3]; }
static uint16_t get16(const uint8_t *p) { return (uint16_t)(p[0] << 8 | p[1]); }

static uint64_t packets, retransmissions, samples;
static int64_t least = INT64_MAX;

static void segment(const uint8_t *ip, uint32_t held, int64_t time_ns)
{
    if (held < 40 || ip[0] >> 4 != 4 || ip[9] != 6)
        return;
    const uint8_t *tcp = ip + (ip[0] & 15) * 4;
    uint32_t source = get32(ip + 12), destination = get32(ip + 16);
    uint32_t from = get16(tcp), to = get16(tcp + 2);
    int up = source < destination || (source == destination && from < to);
    struct flow *flow = up ? find(source, destination, from << 16 | to) : find(destination, source, to << 16 | from);
    struct side *mine = &flow->side[up], *other = &flow->side[!up];
    uint32_t sequence = get32(tcp + 4), acknowledged = get32(tcp + 8);
    uint32_t payload = get16(ip + 2) - (ip[0] & 15) * 4u - (tcp[12] >> 4) * 4u;
    packets++;
    if (tcp[13] & 2)
        mine->started = 0;
    if (payload) {
        if (mine->started && (int32_t)(sequence - mine->next) < 0) {
            retransmissions++;
            mine->timed_ns = 0;
        } else {
            mine->next = sequence + payload;
            mine->started = 1;
            if (!mine->timed_ns) {
                mine->timed_ns = time_ns;
                mine->timed_end = mine->next;
            }
        }
    }
    if (tcp[13] & 16 && other->timed_ns && (int32_t)(other->timed_end - acknowledged) <= 0) {
        int64_t round_trip = time_ns - other->timed_ns;
        samples++;
        if (round_trip < least)
            least = round_trip;
        other->timed_ns = 0;
    }
}

int main(int argc, char **argv)
{
    static uint8_t buffer[BUFFER + 65536];
    int file = argc == 2 ? open(argv[1], O_RDONLY) : -1;
    if (file < 0 || read(file, buffer, 24) != 24)
        return 2;
    uint32_t magic;
    memcpy(&magic, buffer, 4);
    int64_t unit = magic == 0xA1B23C4D ? 1 : 1000;
    table = calloc(capacity, sizeof *table);
    size_t held = 0;
    ssize_t got;
    while (table && (got = read(file, buffer + held, BUFFER)) > 0) {
        size_t end = held + (size_t)got, at = 0;
        while (at + 16 <= end) {
            uint32_t record[4];
            memcpy(record, buffer + at, 16);
            if (at + 16 + record[2] > end)
                break;
            if (record[2] >= 14 && get16(buffer + at + 28) == 0x0800)
                segment(buffer + at + 30, record[2] - 14, record[0] * 1000000000LL + record[1] * unit);
            at += 16 + record[2];
        }
        held = end - at;
        memmove(buffer, buffer + at, held);
    }
    printf("%llu packets %zu flows %llu retransmissions %llu samples, least %lld ns\n", (unsigned long long)packets,
           count, (unsigned long long)retransmissions, (unsigned long long)samples, (long long)least);
    return 0;
}
