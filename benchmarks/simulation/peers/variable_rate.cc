// One download over a link whose rate changes, split before it or not: RATES PERIOD_S DELAY_S SPLIT SECONDS.
// RATES holds a rate in bit/s a line, one a period. Prints the bytes that the link sent and what TCP delivered.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <vector>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

namespace {

constexpr uint32_t kBufferBytes = 256 << 10;
constexpr uint32_t kRelayedBytes = 256 * 472;  // between the server's application and the mobile's, where it is split
constexpr double kPacketBytes = 512.0;
constexpr double kFramingBytes = 2.0;  // of the point-to-point device; made up for in the rate
constexpr uint16_t kPort = 5001;

uint64_t sent_bytes = 0;

void CountSent(Ptr<const Packet> packet) { sent_bytes += packet->GetSize() - static_cast<uint32_t>(kFramingBytes); }

// Sends what arrives on. Windows stay open, since ns-3 does not tell a sender that a closed one has opened: what is on
// its way is bounded where it begins.
class Relay : public Application
{
  public:
    Relay(Address next) : m_next(next) {}

  private:
    void StartApplication() override
    {
        m_listener = Socket::CreateSocket(GetNode(), TcpSocketFactory::GetTypeId());
        m_listener->Bind(InetSocketAddress(Ipv4Address::GetAny(), kPort));
        m_listener->Listen();
        m_listener->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                                      MakeCallback(&Relay::Accept, this));
    }

    void Accept(Ptr<Socket> socket, const Address&)
    {
        m_far = socket;
        m_near = Socket::CreateSocket(GetNode(), TcpSocketFactory::GetTypeId());
        m_near->Bind();
        m_near->Connect(m_next);
        m_far->SetRecvCallback(MakeCallback(&Relay::Readable, this));
        m_near->SetSendCallback(MakeCallback(&Relay::Writable, this));
    }

    void Readable(Ptr<Socket>) { Forward(); }
    void Writable(Ptr<Socket>, uint32_t) { Forward(); }

    void Forward()
    {
        while (true)
        {
            const uint32_t most = std::min(m_far->GetRxAvailable(), m_near->GetTxAvailable());
            Ptr<Packet> packet = most > 0 ? m_far->Recv(most, 0) : nullptr;
            if (!packet || m_near->Send(packet) < 0)
            {
                return;
            }
        }
    }

    Address m_next;
    Ptr<Socket> m_listener, m_far, m_near;
};

// Sends as much as arrives at the mobile, and kRelayedBytes before that.
class Source : public Application
{
  public:
    Source(Address next) : m_next(next) {}

    void Arrived(Ptr<const Packet> packet, const Address&) { m_socket->Send(Create<Packet>(packet->GetSize())); }

  private:
    void StartApplication() override
    {
        m_socket = Socket::CreateSocket(GetNode(), TcpSocketFactory::GetTypeId());
        m_socket->Bind();
        m_socket->SetConnectCallback(MakeCallback(&Source::Connected, this), MakeNullCallback<void, Ptr<Socket>>());
        m_socket->Connect(m_next);
    }

    void Connected(Ptr<Socket>) { m_socket->Send(Create<Packet>(kRelayedBytes)); }

    Address m_next;
    Ptr<Socket> m_socket;
};

void Change(Ptr<PointToPointNetDevice> device, const std::vector<double>* rates, Time period, size_t number)
{
    const double scale = (kPacketBytes + kFramingBytes) / kPacketBytes;
    device->SetDataRate(DataRate(static_cast<uint64_t>((*rates)[number] * scale)));
    if (number + 1 < rates->size())
    {
        Simulator::Schedule(period, &Change, device, rates, period, number + 1);
    }
}

}  // namespace

int main(int count, char* words[])
{
    if (count != 6)
    {
        std::cerr << "five words are needed: RATES PERIOD_S DELAY_S SPLIT SECONDS" << std::endl;
        return 2;
    }
    std::vector<double> rates;
    std::ifstream file(words[1]);
    for (double rate; file >> rate;)
    {
        rates.push_back(rate);
    }
    const bool is_split = std::atoi(words[4]) != 0;

    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpNewReno"));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", StringValue("ns3::TcpClassicRecovery"));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));  // without it, ns-3 leaves the link idle
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(472));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(kBufferBytes));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(kBufferBytes));

    NodeContainer nodes;
    nodes.Create(3);
    InternetStackHelper().Install(nodes);
    PointToPointHelper wire;
    wire.SetDeviceAttribute("DataRate", StringValue("100Mbps"));
    wire.SetChannelAttribute("Delay", StringValue("10ms"));
    wire.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1000p"));
    NetDeviceContainer wired = wire.Install(nodes.Get(0), nodes.Get(1));
    PointToPointHelper cell;
    cell.SetDeviceAttribute("DataRate", StringValue("720kbps"));
    cell.SetChannelAttribute("Delay", TimeValue(Seconds(std::atof(words[3]))));
    cell.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("15p"));  // 15 wait, one is in service
    NetDeviceContainer radio = cell.Install(nodes.Get(1), nodes.Get(2));
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    Ipv4InterfaceContainer near_ends = addresses.Assign(wired);
    addresses.NewNetwork();
    Ipv4InterfaceContainer far_ends = addresses.Assign(radio);
    TrafficControlHelper().Uninstall(wired);  // or FqCoDel would stand before the drop-tail queues
    TrafficControlHelper().Uninstall(radio);
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    Ptr<PointToPointNetDevice> link = DynamicCast<PointToPointNetDevice>(radio.Get(0));
    link->TraceConnectWithoutContext("PhyTxEnd", MakeCallback(&CountSent));
    if (!rates.empty())
    {
        Change(link, &rates, Seconds(std::atof(words[2])), 0);
    }

    const InetSocketAddress mobile(far_ends.GetAddress(1), kPort);
    const InetSocketAddress relay(near_ends.GetAddress(1), kPort);
    PacketSinkHelper receiver("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), kPort));
    ApplicationContainer sink = receiver.Install(nodes.Get(2));
    sink.Start(Seconds(0));
    if (is_split)
    {
        nodes.Get(1)->AddApplication(CreateObject<Relay>(Address(mobile)));
        Ptr<Source> source = CreateObject<Source>(Address(relay));
        nodes.Get(0)->AddApplication(source);
        sink.Get(0)->TraceConnectWithoutContext("Rx", MakeCallback(&Source::Arrived, source));
    }
    else
    {
        BulkSendHelper sender("ns3::TcpSocketFactory", mobile);
        sender.SetAttribute("SendSize", UintegerValue(472));
        sender.Install(nodes.Get(0)).Start(Seconds(0));
    }

    Simulator::Stop(Seconds(std::atof(words[5])));
    Simulator::Run();
    std::cout << sent_bytes << ' ' << DynamicCast<PacketSink>(sink.Get(0))->GetTotalRx() << std::endl;
    Simulator::Destroy();
    return 0;
}
