#include "actors/job/job_store.hpp"

#include <chrono>
#include <cstring>
#include <set>
#include <string>
#include <string_view>

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <fmt/format.h>
#include <kj/array.h>
#include <kj/exception.h>

#include "schemas/job.capnp.h"

namespace troupe::train {
namespace {

constexpr std::string_view kPrefix = "job/";
constexpr std::string_view kProgress = "/progress";
constexpr std::string_view kBegun = "/begun";
constexpr auto kWriteTime = std::chrono::seconds(5);

std::string request_key(std::uint64_t job) {
  return fmt::format("{}{:020}", kPrefix, job);
}
std::string begun_key(std::uint64_t job) {
  return request_key(job) + std::string(kBegun);
}
std::string progress_key(std::uint64_t job) {
  return request_key(job) + std::string(kProgress);
}

kj::StringPtr text(const std::string& s) {
  return {s.c_str(), s.size()};
}
std::string text(capnp::Text::Reader in) {
  return {in.begin(), in.size()};
}

std::string bytes_of(capnp::MessageBuilder& builder) {
  const auto words = capnp::messageToFlatArray(builder);
  const auto bytes = words.asChars();
  return {bytes.begin(), bytes.size()};
}

std::string encode(const SubmitJob& request) {
  capnp::MallocMessageBuilder builder;
  auto out = builder.initRoot<schema::JobRequest>();
  out.setConfig(text(request.config));
  out.setNodes(request.nodes);
  out.setResume(request.resume);
  return bytes_of(builder);
}

std::string encode_progress(const KnownJob& job) {
  capnp::MallocMessageBuilder builder;
  auto out = builder.initRoot<schema::JobProgress>();
  out.setName(text(job.record.name));
  out.setState(text(job.record.state));
  out.setStep(job.record.step);
  out.setSteps(job.record.steps);
  out.setLoss(job.record.loss);
  out.setTestAccuracy(job.record.test_accuracy);
  out.setMessage(text(job.record.message));
  out.setSha256(text(job.record.sha256));
  out.setCode(job.record.code);
  out.setBegun(job.begun);
  out.setFirstStep(job.first_step);
  out.setEpochs(job.epochs);
  out.setCancelled(job.cancelled);
  return bytes_of(builder);
}

void read(schema::JobRequest::Reader in, KnownJob& job) {
  job.request = {text(in.getConfig()), in.getNodes(), in.getResume()};
}

void read(schema::JobProgress::Reader in, KnownJob& job) {
  job.record.name = text(in.getName());
  job.record.state = text(in.getState());
  job.record.step = in.getStep();
  job.record.steps = in.getSteps();
  job.record.loss = in.getLoss();
  job.record.test_accuracy = in.getTestAccuracy();
  job.record.message = text(in.getMessage());
  job.record.sha256 = text(in.getSha256());
  job.record.code = in.getCode();
  job.begun = in.getBegun();
  job.first_step = in.getFirstStep();
  job.epochs = in.getEpochs();
  job.cancelled = in.getCancelled();
}

template <class Struct>
Status decode(const std::string& key, const std::string& bytes, KnownJob& job) {
  const auto corrupt = [&](const std::string& what) {
    return Error{Code::corrupt_data,
                 fmt::format("the control store's '{}' cannot be read ({}); remove it", key, what)};
  };
  if (bytes.size() % sizeof(capnp::word) != 0) return corrupt("its size");
  auto words = kj::heapArray<capnp::word>(bytes.size() / sizeof(capnp::word));
  if (!bytes.empty()) std::memcpy(words.begin(), bytes.data(), bytes.size());
  try {
    capnp::FlatArrayMessageReader reader(words);
    read(reader.getRoot<Struct>(), job);
    return {};
  } catch (const kj::Exception& exception) {
    return corrupt(exception.getDescription().cStr());
  }
}

}  // namespace

Result<std::map<std::uint64_t, KnownJob>> JobStore::read() const {
  std::map<std::uint64_t, KnownJob> jobs;
  if (store_ == nullptr) return jobs;
  TROUPE_ASSIGN(const auto values, store_->read());
  std::set<std::uint64_t> begun;
  for (const auto& [key, value] : values) {
    if (!key.starts_with(kPrefix)) continue;
    const auto number = std::strtoull(key.c_str() + kPrefix.size(), nullptr, 10);
    if (key.ends_with(kBegun)) {
      begun.insert(number);
      continue;
    }
    auto& job = jobs[number];
    job.record.job = number;
    if (key.ends_with(kProgress))
      TROUPE_TRY(decode<schema::JobProgress>(key, value, job));
    else
      TROUPE_TRY(decode<schema::JobRequest>(key, value, job));
  }
  for (const auto number : begun)
    if (const auto job = jobs.find(number); job != jobs.end()) job->second.begun = true;
  return jobs;
}

Status JobStore::begin(std::uint64_t job) const {
  if (store_ == nullptr) return {};
  store_->put(begun_key(job), "1");
  return store_->flush(kWriteTime);
}

Status JobStore::add(const KnownJob& job) const {
  if (store_ == nullptr) return {};
  store_->put(request_key(job.record.job), encode(job.request));
  update(job);
  return store_->flush(kWriteTime);
}

void JobStore::update(const KnownJob& job) const {
  if (store_ != nullptr) store_->put(progress_key(job.record.job), encode_progress(job));
}

void JobStore::remove(std::uint64_t job) const {
  if (store_ == nullptr) return;
  store_->erase(request_key(job));
  store_->erase(begun_key(job));
  store_->erase(progress_key(job));
}

}  // namespace troupe::train
