// Long flows of several round trips share 10 Mbit/s: QUEUE CONTROL SECONDS SEED DELAY_MS...
// QUEUE is drop-tail, red or codel; CONTROL is NewReno or Cubic. Each flow has a sender of its own, so many ms away.
// Prints the bits a second of each flow after a quarter of the time, and then drops and the mean queue since then.
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

namespace {
const uint32_t SEGMENT = 1448;
double queueSum = 0.0;
uint64_t queueSamples = 0;
uint64_t dropsBefore = 0;
std::vector<uint64_t> before;

void SampleQueue(Ptr<QueueDisc> queue)
{
    queueSum += queue->GetNPackets();
    ++queueSamples;
    Simulator::Schedule(MilliSeconds(10), &SampleQueue, queue);
}

void Begin(ApplicationContainer sinks, Ptr<QueueDisc> queue)
{
    for (uint32_t flow = 0; flow < sinks.GetN(); ++flow)
    {
        before.push_back(DynamicCast<PacketSink>(sinks.Get(flow))->GetTotalRx());
    }
    dropsBefore = queue->GetStats().nTotalDroppedPackets;
    SampleQueue(queue);
}
}  // namespace

int main(int count, char* words[])
{
    const std::string queueName = words[1], control = words[2];
    const double seconds = std::atof(words[3]);
    RngSeedManager::SetRun(std::atoi(words[4]));
    Ptr<UniformRandomVariable> start = CreateObject<UniformRandomVariable>();
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::Tcp" + control));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(SEGMENT));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(4 << 20));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));

    NodeContainer routers;
    routers.Create(2);
    NodeContainer receiver;
    receiver.Create(1);
    PointToPointHelper bottleneck;
    bottleneck.SetDeviceAttribute("DataRate", StringValue("10Mbps"));
    bottleneck.SetChannelAttribute("Delay", StringValue("1ms"));
    bottleneck.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1p"));
    PointToPointHelper access;
    access.SetDeviceAttribute("DataRate", StringValue("1Gbps"));
    access.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("100000p"));

    InternetStackHelper stack;
    stack.Install(routers);
    stack.Install(receiver);
    NetDeviceContainer middle = bottleneck.Install(routers);
    access.SetChannelAttribute("Delay", StringValue("0ms"));
    NetDeviceContainer last = access.Install(routers.Get(1), receiver.Get(0));

    TrafficControlHelper managed;
    if (queueName == "red")
    {
        managed.SetRootQueueDisc("ns3::RedQueueDisc", "MinTh", DoubleValue(10), "MaxTh", DoubleValue(30), "QW",
                                 DoubleValue(0.002), "LInterm", DoubleValue(50), "Gentle", BooleanValue(true), "Wait",
                                 BooleanValue(false),  // distances between drops as in the paper of 1993

                                 "LinkBandwidth", StringValue("10Mbps"), "MaxSize", StringValue("200p"),
                                 "MeanPktSize", UintegerValue(1500));
    }
    else if (queueName == "codel")
    {
        managed.SetRootQueueDisc("ns3::CoDelQueueDisc", "MaxSize", StringValue("1000p"));
    }
    else
    {
        managed.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", StringValue("50p"));
    }
    Ptr<QueueDisc> queue = managed.Install(middle.Get(0)).Get(0);

    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    addresses.Assign(middle);
    addresses.NewNetwork();
    Ipv4InterfaceContainer end = addresses.Assign(last);
    ApplicationContainer sinks;
    for (int flow = 0; flow + 5 < count; ++flow)
    {
        NodeContainer sender;
        sender.Create(1);
        stack.Install(sender);
        access.SetChannelAttribute("Delay", StringValue(std::string(words[5 + flow]) + "ms"));
        NetDeviceContainer first = access.Install(sender.Get(0), routers.Get(0));
        addresses.NewNetwork();
        addresses.Assign(first);
        const uint16_t port = 5001 + flow;
        BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(end.GetAddress(1), port));
        bulk.SetAttribute("SendSize", UintegerValue(SEGMENT));
        bulk.Install(sender.Get(0)).Start(Seconds(start->GetValue(0.0, 1.0)));
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
        sinks.Add(sink.Install(receiver.Get(0)));
    }
    TrafficControlHelper().Uninstall(last);
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    Simulator::Schedule(Seconds(seconds / 4), &Begin, sinks, queue);
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    for (uint32_t flow = 0; flow < sinks.GetN(); ++flow)
    {
        const uint64_t total = DynamicCast<PacketSink>(sinks.Get(flow))->GetTotalRx();
        std::cout << 8.0 * (total - before.at(flow)) / (0.75 * seconds) << ' ';
    }
    std::cout << queue->GetStats().nTotalDroppedPackets - dropsBefore << ' ' << queueSum / queueSamples << std::endl;
    Simulator::Destroy();
    return 0;
}
