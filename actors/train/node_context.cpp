#include "actors/train/node_context.hpp"

#include <algorithm>
#include <set>

#include <caf/actor_cast.hpp>
#include <fmt/format.h>

#include "actors/train/model_factory.hpp"
#include "kernels/instruction_set.hpp"

namespace troupe::train {
namespace {

/// Limits the library to what the job says, and tells what the results then depend on. That it
/// could not be limited is an error only if it computes anything.
Result<std::string> settle_instruction_set(const JobConfig& config, const kernels::Model& model,
                                           const kernels::ComputeDevice& device) {
  const auto limited = kernels::limit_instruction_set(config.max_cpu_isa);
  TROUPE_ASSIGN(auto used, kernels::instruction_set(model, workspace_options(config, device)));
  if (!used.empty() && !limited.ok())
    return Error{limited.code(),
                 fmt::format("job.max_cpu_isa is \"{}\", but {}, or take the job.max_cpu_isa of "
                             "the job before",
                             config.max_cpu_isa, limited.error().message)};
  return used;
}

}  // namespace

Result<std::shared_ptr<JobOnNode>> JobOnNode::make(const Setup& setup) {
  TROUPE_ASSIGN(auto config, parse_job(setup.config));
  TROUPE_ASSIGN(auto data, open_datasets(config));
  std::shared_ptr<JobOnNode> job(new JobOnNode(std::move(config), std::move(data)));
  TROUPE_ASSIGN(job->sampler_, Sampler::make({.samples = job->train_data().count(),
                                              .batch = job->config_.data.batch,
                                              .ranks = job->config_.ranks,
                                              .seed = job->config_.seed}));
  job->length_ = {job->sampler_->steps_per_epoch(), job->config_.epochs};
  TROUPE_ASSIGN(auto model, make_model(job->config_, job->train_data().layout()));
  TROUPE_ASSIGN(job->device_, open_device(job->config_));
  TROUPE_ASSIGN(job->instruction_set_, settle_instruction_set(job->config_, model, job->device_));
  TROUPE_ASSIGN(job->replica_, Replica::make(job->config_, std::move(model), job->device_,
                                             setup.resume_from, job->length_));
  return job;
}

std::string JobOnNode::take_replaced() {
  SkipBadSamples::Found all;
  for (const auto* skips : {data_.train_skips, data_.test_skips}) {
    if (skips == nullptr) continue;
    const auto found = skips->found();
    all.count += found.count;
    if (all.first.empty()) all.first = found.first;
  }
  if (replaced_told_.exchange(all.count) == all.count) return {};
  return fmt::format(
      "{} sample{} of the data could not be decoded and {} replaced by the next one; "
      "the first: {}",
      all.count, all.count == 1 ? "" : "s", all.count == 1 ? "was" : "were", all.first);
}

Result<std::shared_ptr<JobOnNode>> NodeContext::job(const Setup& setup) {
  // Held while the job is made: the others on this node wait for the same one.
  MutexLock lock(mutex_);
  std::erase_if(jobs_, [](const auto& entry) { return entry.second.expired(); });
  auto& known = jobs_[setup.job];
  if (auto job = known.lock()) return job;
  forget_failures();
  for (const auto& failure : failures_)
    if (failure.job == setup.job && failure.generation == setup.generation) return failure.reason;
  auto made = JobOnNode::make(setup);
  if (made.ok())
    known = *made;
  else
    failures_.push_back({setup.job, setup.generation, made.error()});
  return made;
}

void NodeContext::forget_failures() {
  std::set<std::uint64_t> here;
  for (const Entry& x : entries_)
    if (caf::actor_cast<caf::actor>(x.actor)) here.insert(x.job);
  std::erase_if(failures_, [&](const Failure& x) { return !here.contains(x.job); });
}

void NodeContext::enroll(const Setup& setup, Role role, const caf::actor& actor) {
  MutexLock lock(mutex_);
  std::erase_if(entries_, [](const Entry& x) { return !caf::actor_cast<caf::actor>(x.actor); });
  entries_.push_back({setup.job, setup.generation, role, actor.address()});
}

bool NodeContext::idle() {
  MutexLock lock(mutex_);
  return std::none_of(entries_.begin(), entries_.end(), [](const Entry& x) {
    return caf::actor_cast<caf::actor>(x.actor) != nullptr;
  });
}

std::vector<Enrolled> NodeContext::enrolled(std::uint64_t job) {
  std::vector<Enrolled> found;
  MutexLock lock(mutex_);
  for (const auto& entry : entries_)
    if (auto actor = caf::actor_cast<caf::actor>(entry.actor); entry.job == job && actor)
      found.push_back({entry.generation, entry.role, std::move(actor)});
  return found;
}

}  // namespace troupe::train
