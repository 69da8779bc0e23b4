#include "runtime/control/internal/etcd_client.hpp"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>
#include <httplib.h>

#include "runtime/control/internal/wait.hpp"
#include "runtime/control/store.hpp"

namespace troupe::control {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Answers every request with what it was told, as an etcd would not. Threads: one.
class OddServer {
public:
  explicit OddServer(httplib::Server::Handler handler) {
    server_.Post(".*", std::move(handler));
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
  }
  ~OddServer() {
    while (!server_.is_running()) std::this_thread::yield();
    server_.stop();
    thread_.join();
  }
  Endpoint endpoint() const { return {"127.0.0.1", static_cast<std::uint16_t>(port_)}; }

private:
  httplib::Server server_;
  int port_ = 0;
  std::thread thread_;
};

TEST(EtcdClient, gives_the_body_and_keeps_to_the_endpoint_that_answers) {
  std::atomic<int> asked = 0;
  OddServer broken([&](const httplib::Request&, httplib::Response& response) {
    ++asked;
    response.status = 503;
  });
  OddServer good([](const httplib::Request& request, httplib::Response& response) {
    response.set_content("re: " + request.body, "application/json");
  });
  EtcdClient client({broken.endpoint(), good.endpoint()});
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(client.post("/v3/x", "hello", deadline_after(seconds(20))).value(), "re: hello");
  EXPECT_EQ(asked, 1);
}

TEST(EtcdClient, does_not_wait_beyond_the_deadline) {
  std::atomic<bool> done = false;
  OddServer silent([&](const httplib::Request&, httplib::Response&) {
    while (!done) std::this_thread::sleep_for(milliseconds(1));
  });
  EtcdClient client({silent.endpoint(), silent.endpoint()});
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(client.post("/v3/x", "", deadline_after(milliseconds(200))).code(), Code::unavailable);
  EXPECT_LT(std::chrono::steady_clock::now() - began, seconds(5));
  EXPECT_EQ(client.post("/v3/x", "", deadline_after(Duration::zero())).code(), Code::unavailable);
  done = true;
}

TEST(EtcdClient, another_service_at_the_address_is_an_error_that_says_so) {
  for (const auto* text : {"<html>hello</html>", "{\"kvs\":[{\"key\":\"???\"}]}", "[]", ""}) {
    OddServer odd([&](const httplib::Request&, httplib::Response& response) {
      response.set_content(text, "text/html");
    });
    const auto store = open_store("etcd://" + to_string(odd.endpoint()) + "/x").value();
    const auto term = store->lead(seconds(20), nullptr);
    ASSERT_FALSE(term.ok());
    EXPECT_TRUE(term.code() == Code::protocol_error || term.code() == Code::corrupt_data)
        << to_string(term.error());
  }
}

}  // namespace
}  // namespace troupe::control
