#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/actors/job/synthetic_job.hpp"
#include "tests/tools/process.hpp"

namespace troupe::tool {
namespace {

using train::TemporaryFolder;

void expect_words(const Process& process, const std::vector<std::string>& words) {
  for (const auto& word : words)
    EXPECT_NE(process.output().find(word), std::string::npos) << word << "\n" << process.output();
}

/// One sentence on one line, with every word of `words`.
void expect_sentence(const Process& process, std::initializer_list<std::string> words) {
  const auto& output = process.output();
  const auto start = output.find("troupe: ");
  ASSERT_NE(start, std::string::npos) << output;
  const auto sentence = output.substr(start, output.find('\n', start) - start);
  EXPECT_EQ(output.find('\n', start), output.size() - 1) << output;
  for (const auto& word : words)
    EXPECT_NE(sentence.find(word), std::string::npos) << word << "\n" << output;
}

/// A TCP socket bound to a free loopback port.
class Socket {
public:
  Socket() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  }
  ~Socket() { close(fd_); }
  std::uint16_t listen_somewhere() {
    bind(fd_, reinterpret_cast<sockaddr*>(&address_), sizeof address_);
    listen(fd_, 8);
    socklen_t size = sizeof address_;
    getsockname(fd_, reinterpret_cast<sockaddr*>(&address_), &size);
    return ntohs(address_.sin_port);
  }
  bool send_to(std::uint16_t port, const std::string& bytes) {
    address_.sin_port = htons(port);
    return connect(fd_, reinterpret_cast<sockaddr*>(&address_), sizeof address_) == 0 &&
           send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0;
  }

private:
  int fd_;
  sockaddr_in address_{};
};

class WrongInput : public testing::Test {
protected:
  std::string job_file(const std::string& more = "") {
    const auto path = folder_.path() / "job.toml";
    std::ofstream(path) << train::synthetic_job(folder_.path()).to_toml() << more;
    return path;
  }
  TemporaryFolder folder_;
};

TEST_F(WrongInput, an_unknown_key_is_named_with_its_place) {
  Process train({"train", job_file("\nfancy = 1\n")});
  EXPECT_EQ(train.wait(), 2);
  expect_sentence(train, {"job.toml", "fancy"});
}

TEST_F(WrongInput, a_head_without_the_store_that_its_options_are_of_is_refused) {
  Process nothing({"head", "--listen", "127.0.0.1:0", "--store", ""});
  EXPECT_EQ(nothing.wait(), 2) << nothing.output();
  EXPECT_NE(nothing.output().find("--store: it is empty"), std::string::npos) << nothing.output();
  Process headless({"head", "--listen", "127.0.0.1:0", "--headless", "5"});
  EXPECT_EQ(headless.wait(), 2) << headless.output();
  EXPECT_NE(headless.output().find("--headless requires --store"), std::string::npos)
      << headless.output();
}

TEST_F(WrongInput, a_job_that_may_use_fewer_nodes_than_it_needs_is_refused) {
  Head head;
  Process submit({"submit", job_file(), "--head", head.address, "--nodes", "1", "--set",
                  "elastic.min_nodes=2"});
  EXPECT_EQ(submit.wait(), 2) << submit.output();
  expect_sentence(submit, {"1 node at most", "elastic.min_nodes is 2"});
}

TEST_F(WrongInput, an_unknown_command_is_named) {
  Process troupe({"trian", "job.toml"});
  EXPECT_EQ(troupe.wait(), 2) << troupe.output();
  expect_sentence(troupe, {"'trian'", "--help"});
}

TEST_F(WrongInput, a_missing_job_file_is_named) {
  Process train({"train", "/nowhere/job.toml"});
  EXPECT_EQ(train.wait(), 2);
  expect_sentence(train, {"/nowhere/job.toml"});
}

TEST_F(WrongInput, a_missing_data_file_is_named) {
  const auto job = job_file();
  std::filesystem::remove(folder_.path() / "train-images");
  Process train({"train", job, "--nodes", "2"});
  EXPECT_EQ(train.wait(), 2) << train.output();
  EXPECT_NE(train.output().find("train-images"), std::string::npos) << train.output();
}

TEST_F(WrongInput, what_this_build_or_machine_does_not_have_is_named) {
#ifndef TROUPE_CUDA
  Process device({"train", job_file(), "--set", "job.device=cuda"});
  EXPECT_EQ(device.wait(), 2) << device.output();
  expect_words(device, {"job.device is \"cuda\"", "TROUPE_CUDA=ON"});
#endif
  Process precision({"train", job_file(), "--set", "job.precision=f16"});
  EXPECT_EQ(precision.wait(), 2) << precision.output();
  expect_words(precision, {"precision f16", "bf16"});
}

TEST_F(WrongInput, weights_that_are_a_folder_are_named) {
  Process train({"train", job_file(), "--set", "model.weights=" + folder_.path().string()});
  EXPECT_EQ(train.wait(), 2) << train.output();
  expect_words(train, {folder_.path().string(), "regular file", "model.weights"});
}

TEST_F(WrongInput, a_truncated_data_file_is_named) {
  const auto job = job_file();
  std::filesystem::resize_file(folder_.path() / "train-images", 1000);
  Process train({"train", job, "--nodes", "2"});
  EXPECT_EQ(train.wait(), 2) << train.output();
  EXPECT_NE(train.output().find("train-images"), std::string::npos) << train.output();
}

TEST_F(WrongInput, more_images_than_labels_names_both_counts) {
  const auto job = job_file();
  std::filesystem::copy_file(folder_.path() / "test-labels", folder_.path() / "train-labels",
                             std::filesystem::copy_options::overwrite_existing);
  Process train({"train", job, "--nodes", "2"});
  EXPECT_EQ(train.wait(), 2) << train.output();
  EXPECT_NE(train.output().find("640"), std::string::npos) << train.output();
  EXPECT_NE(train.output().find("100"), std::string::npos) << train.output();
}

TEST_F(WrongInput, a_port_in_use_is_named) {
  Socket taken;
  const auto address = "127.0.0.1:" + std::to_string(taken.listen_somewhere());
  Process head({"head", "--listen", address});
  EXPECT_EQ(head.wait(), 2) << head.output();
  expect_sentence(head, {address});
}

TEST_F(WrongInput, an_unreachable_head_is_named) {
  std::uint16_t port = 0;
  {
    Socket closed;
    port = closed.listen_somewhere();
  }
  const auto address = "127.0.0.1:" + std::to_string(port);
  Process node({"node", "--head", address});
  EXPECT_EQ(node.wait(), 3) << node.output();
  expect_sentence(node, {address});
}

TEST_F(WrongInput, a_wrong_token_is_refused_and_does_no_harm) {
  Head head({"TROUPE_TOKEN=right"});
  Process node({"node", "--head", head.address}, {"TROUPE_TOKEN=wrong"});
  EXPECT_EQ(node.wait(), 3) << node.output();
  expect_sentence(node, {"token"});
  Process status({"status", "--head", head.address}, {"TROUPE_TOKEN=right"});
  EXPECT_EQ(status.wait(), 0) << status.output();
}

TEST_F(WrongInput, an_address_that_others_cannot_reach_is_refused) {
  Process head({"head", "--listen", "0.0.0.0:0"});
  EXPECT_EQ(head.wait(), 2) << head.output();
  expect_sentence(head, {"0.0.0.0"});
}

TEST_F(WrongInput, random_bytes_at_the_port_do_no_harm) {
  Head head;
  std::mt19937 random(7);
  for (int i = 0; i < 20; ++i) {
    std::string bytes(1 + random() % 4000, '\0');
    for (auto& byte : bytes) byte = static_cast<char>(random());
    Socket client;
    EXPECT_TRUE(client.send_to(head.port, bytes));
  }
  Process status({"status", "--head", head.address});
  EXPECT_EQ(status.wait(), 0) << status.output();
  head.process.signal(SIGTERM);
  EXPECT_EQ(head.process.wait(), 0) << head.process.output();
}

TEST_F(WrongInput, a_bad_override_is_named) {
  Process train({"train", job_file(), "--set", "optimizer.learning=1"});
  EXPECT_EQ(train.wait(), 2) << train.output();
  expect_sentence(train, {"optimizer.learning"});
}

}  // namespace
}  // namespace troupe::tool
