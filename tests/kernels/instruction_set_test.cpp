#include "kernels/instruction_set.hpp"

#include <cstdlib>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/models.hpp"

namespace troupe::kernels {
namespace {

using testing::HasSubstr;

WorkspaceOptions with(KernelChoice kernels, int threads = 1) {
  WorkspaceOptions options;
  options.kernels = kernels;
  options.threads = threads;
  return options;
}

std::string set_of(const WorkspaceOptions& options, const std::string& model = "lenet5") {
  return instruction_set(make_model(model).value(), options).value();
}

/// The library takes one limit for all of a process: each test's body has one of its own.
class InstructionSet : public testing::Test {
protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) return;
#endif
    GTEST_SKIP() << "this CPU has no AVX2, so there is nothing to limit";
  }

  /// Ends the process with what is not so, if anything.
  static void require(bool holds, const char* what) {
    if (holds) return;
    fmt::print(stderr, "not so: {}\n", what);
    std::exit(1);
  }
  static void end() {
    fmt::print(stderr, "all is so\n");
    std::exit(0);
  }
  static bool fails(const Status& status, std::string_view part) {
    return status.code() == Code::failed_precondition &&
           status.error().message.find(part) != std::string::npos;
  }
};
#define REQUIRE(condition) require(condition, #condition)

TEST_F(InstructionSet, our_own_loops_depend_on_none_and_the_library_s_do) {
  EXPECT_EQ(set_of(with(KernelChoice::portable)), "");
  EXPECT_EQ(set_of(with(KernelChoice::automatic)), "");
  EXPECT_EQ(set_of(with(KernelChoice::automatic, 2)), "") << "with any number of threads";
  EXPECT_NE(set_of(with(KernelChoice::automatic, 2), "mlp"), "");
  EXPECT_NE(set_of(with(KernelChoice::library)), "");
}

TEST_F(InstructionSet, a_limit_holds_for_the_process_and_another_is_refused) {
  const auto body = [] {
    REQUIRE(limit_instruction_set("native").ok());
    REQUIRE(limit_instruction_set("sse41").ok());
    REQUIRE(set_of(with(KernelChoice::library)) == "sse41");
    REQUIRE(limit_instruction_set("sse41").ok());
    REQUIRE(fails(limit_instruction_set("avx2"), "sse41"));
    REQUIRE(fails(limit_instruction_set("native"), "sse41"));
    REQUIRE(set_of(with(KernelChoice::library)) == "sse41");
    end();
  };
  EXPECT_EXIT(body(), testing::ExitedWithCode(0), "all is so");
}

TEST_F(InstructionSet, it_cannot_be_limited_after_the_first_kernel_unless_that_changes_nothing) {
  const auto body = [] {
    const auto native = set_of(with(KernelChoice::library));
    REQUIRE(limit_instruction_set("native").ok());
    REQUIRE(fails(limit_instruction_set("sse41"), native));
    REQUIRE(set_of(with(KernelChoice::library)) == native);
    end();
  };
  EXPECT_EXIT(body(), testing::ExitedWithCode(0), "all is so");
}

TEST_F(InstructionSet, kernels_of_our_own_fix_nothing) {
  const auto body = [] {
    REQUIRE(set_of(with(KernelChoice::automatic)).empty());
    REQUIRE(limit_instruction_set("avx2").ok());
    REQUIRE(set_of(with(KernelChoice::library)) == "avx2");
    end();
  };
  EXPECT_EXIT(body(), testing::ExitedWithCode(0), "all is so");
}

TEST_F(InstructionSet, another_name_is_refused_with_those_there_are) {
  const auto status = limit_instruction_set("mmx");
  ASSERT_EQ(status.code(), Code::invalid_argument);
  EXPECT_THAT(status.error().message, HasSubstr("avx512_core"));
}

}  // namespace
}  // namespace troupe::kernels
