// What a step's reduction costs each node among 10, 100 and 1,000: the messages of real machines,
// each node with one rank, and of plans where a step would take too long here.
#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <numeric>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "actors/collective/reduce_machine.hpp"
#include "tests/actors/collective/simulation.hpp"
#include "tests/support/scale.hpp"

namespace troupe::collective {
namespace {

struct Traffic {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
};
using PerNode = std::vector<Traffic>;

struct Model {
  const char* name;
  std::vector<std::uint64_t> buckets;
};

std::shared_ptr<const ReducePlan> plan_for(std::uint32_t nodes, const Model& model) {
  PlanSpec spec;
  spec.nodes = nodes;
  spec.node_of_rank.resize(nodes);
  std::iota(spec.node_of_rank.begin(), spec.node_of_rank.end(), 0u);
  spec.bucket_elements = model.buckets;
  spec.extras = 2;
  return *ReducePlan::make(spec);
}

/// What each node sends in a step by the plan, where each has one rank.
PerNode planned(const ReducePlan& plan) {
  const std::uint64_t others = plan.nodes() - 1;
  PerNode result(plan.nodes());
  const auto send = [](Traffic& node, std::uint64_t messages, std::uint64_t bytes) {
    node.messages += messages;
    node.bytes += messages * bytes;
  };
  for (const Slice& slice : plan.slices())
    for (std::uint32_t node = 0; node < plan.nodes(); ++node) {
      const bool to_all = slice.owner == node || slice.owner == Slice::kAllNodes;
      send(result[node], to_all ? others : 1, slice.elements * sizeof(float));
    }
  for (std::uint32_t node = 0; node < plan.nodes(); ++node) {
    const bool to_all = plan.extras_owner() == node || plan.extras_owner() == Slice::kAllNodes;
    send(result[node], to_all ? others : 1, plan.spec().extras * sizeof(double));
  }
  return result;
}

/// One step of all machines, in the order in which they send.
class Cluster {
public:
  explicit Cluster(std::shared_ptr<const ReducePlan> plan) : plan_(std::move(plan)) {
    for (std::uint32_t node = 0; node < plan_->nodes(); ++node) nodes_.emplace_back(*this, node);
  }

  PerNode step() {
    std::vector<Buffer> gradients;
    for (const auto elements : plan_->spec().bucket_elements)
      gradients.push_back(to_buffer(std::vector<float>(elements, 1.0f)));
    for (std::uint32_t node = 0; node < plan_->nodes(); ++node)
      EXPECT_TRUE(nodes_[node].machine.start(plan_, node, 1, 0).ok());
    for (std::uint32_t node = 0; node < plan_->nodes(); ++node) {
      auto& machine = nodes_[node].machine;
      for (std::uint32_t b = 0; b < plan_->buckets(); ++b)
        EXPECT_TRUE(machine.add_gradient(1, 0, node, b, gradients[b]).ok());
      EXPECT_TRUE(machine.add_extras(1, 0, node, std::vector<double>{1, 2}).ok());
      deliver();
    }
    PerNode result;
    for (const Node& node : nodes_) {
      EXPECT_EQ(node.done, 1u);
      result.push_back(node.sent);
    }
    return result;
  }

private:
  struct Node final : ReduceMachine::Effects {
    Node(Cluster& in, std::uint32_t self) : cluster(in), machine(options(in), *this), own(self) {}

    void send(std::uint32_t to, Partial m) override { post(to, m.parts[0].size(), std::move(m)); }
    void send(std::uint32_t to, SliceSum m) override { post(to, m.sum.size(), std::move(m)); }
    void send(std::uint32_t to, Extras m) override {
      post(to, m.values.size() * sizeof(double), std::move(m));
    }
    void slice_done(std::uint64_t, std::uint32_t, Buffer sum) override {
      float first = 0;
      if (!sum.empty()) std::memcpy(&first, sum.data(), sizeof first);
      EXPECT_TRUE(sum.empty() || first == static_cast<float>(cluster.plan_->ranks()));
    }
    void bucket_done(std::uint64_t, std::uint32_t, Buffer) override {}
    void step_done(std::uint64_t, std::vector<double> extras) override {
      ++done;
      EXPECT_EQ(extras[1], 2.0 * cluster.plan_->ranks());
    }

    template <class M>
    void post(std::uint32_t to, std::size_t bytes, M&& message) {
      ++sent.messages;
      sent.bytes += bytes;
      cluster.flight_.push_back({to, std::forward<M>(message)});
    }
    static ReduceMachine::Options options(Cluster& cluster) {
      ReduceMachine::Options options;
      options.delivery = ReduceMachine::Delivery::slices;
      options.pool = cluster.pool_;
      return options;
    }

    Cluster& cluster;
    ReduceMachine machine;
    std::uint32_t own;
    Traffic sent;
    std::size_t done = 0;
  };

  void deliver() {
    while (!flight_.empty()) {
      auto sent = std::move(flight_.front());
      flight_.pop_front();
      auto& machine = nodes_[sent.to].machine;
      const auto status =
          std::visit([&](auto& m) { return machine.receive(std::move(m)); }, sent.message);
      ASSERT_TRUE(status.ok()) << status.error().message;
    }
  }

  std::shared_ptr<const ReducePlan> plan_;
  std::shared_ptr<BufferPool> pool_ = std::make_shared<BufferPool>();
  std::deque<Recorder::Sent> flight_;
  std::deque<Node> nodes_;
};

const std::vector<Model>& models() {
  static const std::vector<Model> kModels = {
      {"LeNet-5, one bucket of 0.24 MiB", {61706}},
      {"8 buckets of 1 MiB", std::vector<std::uint64_t>(8, 1 << 18)},
      {"8 buckets of 16 MiB", std::vector<std::uint64_t>(8, 1 << 22)},
  };
  return kModels;
}

Traffic most(const PerNode& nodes) {
  Traffic result;
  for (const Traffic& node : nodes) {
    result.messages = std::max(result.messages, node.messages);
    result.bytes = std::max(result.bytes, node.bytes);
  }
  return result;
}

double mean_messages(const PerNode& nodes) {
  std::uint64_t sum = 0;
  for (const Traffic& node : nodes) sum += node.messages;
  return static_cast<double>(sum) / static_cast<double>(nodes.size());
}

TEST(ReduceScale, messages_and_bytes_of_a_node_are_bounded) {
  // By bench/remoting_bench: 1.7 million small messages a second. And a network of 10 GB/s.
  constexpr double kMessage = 0.6e-6, kByte = 1e-10;
  fmt::print("{:>6}  {:32} {:>7} {:>9} {:>9} {:>9} {:>12} {:>10}\n", "nodes", "gradients", "owners",
             "mean msg", "most msg", "most MiB", "messages ms", "bytes ms");
  for (const Model& model : models())
    for (const std::uint32_t nodes : scale_sizes()) {
      const auto plan = plan_for(nodes, model);
      const auto sent = planned(*plan);
      const std::uint64_t bytes =
          4 * std::accumulate(model.buckets.begin(), model.buckets.end(), std::uint64_t{0});
      if (nodes * bytes <= (std::uint64_t{1} << 30)) {
        const auto real = Cluster(plan).step();
        for (std::uint32_t node = 0; node < nodes; ++node) {
          ASSERT_EQ(real[node].messages, sent[node].messages) << "node " << node;
          ASSERT_EQ(real[node].bytes, sent[node].bytes) << "node " << node;
        }
      }
      std::vector<bool> owns(nodes);
      for (const Slice& slice : plan->slices())
        if (slice.owner != Slice::kAllNodes) owns[slice.owner] = true;
      const auto worst = most(sent);
      fmt::print("{:6}  {:32} {:7} {:9.0f} {:9} {:9.1f} {:12.2f} {:10.2f}\n", nodes, model.name,
                 std::count(owns.begin(), owns.end(), true), mean_messages(sent), worst.messages,
                 static_cast<double>(worst.bytes) / (1 << 20),
                 1e3 * kMessage * static_cast<double>(worst.messages),
                 1e3 * kByte * static_cast<double>(worst.bytes));

      const std::uint64_t buckets = plan->buckets();
      const std::uint64_t chunks = bytes / plan->spec().tuning.chunk_bytes;
      EXPECT_LE(worst.messages, 2 * (buckets * nodes + chunks) + nodes);
      EXPECT_LE(worst.bytes, 2 * bytes + (8u << 20));
      // A small model: each node talks to the owners of its few slices, not to everybody.
      if (nodes == 1000 && buckets == 1) {
        EXPECT_LE(mean_messages(sent), 200);
      }
    }
}

TEST(ReduceScale, extra_values_take_two_messages_a_node_where_there_are_many) {
  const auto plan = plan_for(1000, {"extras alone", {}});
  EXPECT_NE(plan->extras_owner(), Slice::kAllNodes);
  const auto sent = Cluster(plan).step();
  EXPECT_LT(mean_messages(sent), 2.0);
  EXPECT_EQ(plan_for(32, {"", {}})->extras_owner(), Slice::kAllNodes);
}

}  // namespace
}  // namespace troupe::collective
