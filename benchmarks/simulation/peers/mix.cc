// Twenty TCP flows of different round trips and Poisson cross traffic over 100 Mbit/s: SECONDS.
// Flow n of 0 to 19 has 5 n + 4 ms one way behind the bottleneck's 1 ms, and begins after n / 20 s.
// Prints how many segments arrived; `simulate_mix.py` simulates the same.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

namespace {
const int FLOWS = 20;
const uint32_t SEGMENT = 1460;
const uint16_t CROSS_PORT = 9;
const double CROSS_BIT_S = 10e6;
const uint32_t CROSS_BYTES = 1500;  // of IP

void SendCross(Ptr<Socket> socket, Ptr<ExponentialRandomVariable> distance)
{
    socket->Send(Create<Packet>(CROSS_BYTES - 28));
    Simulator::Schedule(Seconds(distance->GetValue()), &SendCross, socket, distance);
}
}  // namespace

int main(int count, char* words[])
{
    const double seconds = count > 1 ? std::atof(words[1]) : 100.0;
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpNewReno"));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(SEGMENT));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(4 << 20));

    NodeContainer ends;  // server and router
    ends.Create(2);
    InternetStackHelper stack;
    stack.Install(ends);
    PointToPointHelper bottleneck;
    bottleneck.SetDeviceAttribute("DataRate", StringValue("100Mbps"));
    bottleneck.SetChannelAttribute("Delay", StringValue("1ms"));
    bottleneck.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("333p"));
    NetDeviceContainer shared = bottleneck.Install(ends);
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    Ipv4InterfaceContainer middle = addresses.Assign(shared);
    TrafficControlHelper().Uninstall(shared);  // or FqCoDel would stand before the drop-tail queue

    PointToPointHelper access;
    access.SetDeviceAttribute("DataRate", StringValue("1Gbps"));
    access.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("100000p"));
    ApplicationContainer sinks;
    for (int flow = 0; flow < FLOWS; ++flow)
    {
        NodeContainer receiver;
        receiver.Create(1);
        stack.Install(receiver);
        access.SetChannelAttribute("Delay", StringValue(std::to_string(5 * flow + 4) + "ms"));
        NetDeviceContainer own = access.Install(ends.Get(1), receiver.Get(0));
        addresses.NewNetwork();
        Ipv4InterfaceContainer end = addresses.Assign(own);
        TrafficControlHelper().Uninstall(own);
        const uint16_t port = 5001 + flow;
        BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(end.GetAddress(1), port));
        bulk.SetAttribute("SendSize", UintegerValue(SEGMENT));
        bulk.Install(ends.Get(0)).Start(Seconds(std::min(flow / double(FLOWS), seconds / 2)));
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
        sinks.Add(sink.Install(receiver.Get(0)));
    }
    PacketSinkHelper others("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), CROSS_PORT));
    others.Install(ends.Get(1));
    Ptr<Socket> cross = Socket::CreateSocket(ends.Get(0), UdpSocketFactory::GetTypeId());
    cross->Connect(InetSocketAddress(middle.GetAddress(1), CROSS_PORT));
    Ptr<ExponentialRandomVariable> distance = CreateObject<ExponentialRandomVariable>();
    distance->SetAttribute("Mean", DoubleValue(8.0 * CROSS_BYTES / CROSS_BIT_S));
    Simulator::Schedule(Seconds(0), &SendCross, cross, distance);

    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    uint64_t total = 0;
    for (uint32_t flow = 0; flow < sinks.GetN(); ++flow)
    {
        total += DynamicCast<PacketSink>(sinks.Get(flow))->GetTotalRx();
    }
    std::cout << total / SEGMENT << std::endl;
    Simulator::Destroy();
    return 0;
}
