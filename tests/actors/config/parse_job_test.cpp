#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/config/example_job.hpp"

namespace troupe::train {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

/// The sentence that `text` with `overrides` is refused with.
std::string refusal(const std::string& text, const std::vector<std::string>& overrides = {}) {
  auto job = parse_job(text, {.source = "mnist.toml"}, overrides);
  EXPECT_EQ(job.code(), Code::invalid_argument) << text;
  return job.ok() ? "" : job.error().message;
}

/// The smallest job with `line` put under the table [name].
std::string with(const std::string& line) {
  return kSmallestJob + line + "\n";
}
std::string replaced(const std::string& what, const std::string& by) {
  std::string text = kSmallestJob;
  return text.replace(text.find(what), what.size(), by);
}

TEST(ParseJob, what_is_not_said_has_its_default) {
  const JobConfig job = smallest_job();
  EXPECT_EQ(job.name, "job");
  EXPECT_EQ(job.ranks, 8u);
  EXPECT_EQ(job.epochs, 1u);
  EXPECT_EQ(job.model.classes, 10u);
  EXPECT_EQ(job.batch_per_rank(), 64u);
  EXPECT_EQ(job.optimizer.schedule.kind, "constant");
  EXPECT_EQ(job.checkpoint.directory, "runs/job");
  EXPECT_EQ(job.operation.prefetch, 2u);
}

TEST(ParseJob, every_table_is_read) {
  const JobConfig job = *parse_job(with(R"(mean = 0.1307
std = 1
[optimizer]
lr = 0.05
momentum = 0.9
nesterov = true
[optimizer.schedule]
kind = "cosine"
warmup_steps = 7
[checkpoint]
directory = "out"
keep = 5
[operation]
log_every = 3)"));
  EXPECT_EQ(job.data.mean, std::vector<double>{0.1307});
  EXPECT_EQ(job.data.std, std::vector<double>{1.0});
  EXPECT_EQ(job.optimizer.lr, 0.05);
  EXPECT_TRUE(job.optimizer.nesterov);
  EXPECT_EQ(job.optimizer.schedule.kind, "cosine");
  EXPECT_EQ(job.optimizer.schedule.warmup_steps, 7u);
  EXPECT_EQ(job.checkpoint.directory, "out");
  EXPECT_EQ(job.checkpoint.keep, 5u);
  EXPECT_EQ(job.operation.log_every, 3u);
}

TEST(ParseJob, overrides_are_toml_or_bare_words_and_later_ones_win) {
  const JobConfig job = *parse_job(
      kSmallestJob, {},
      {"optimizer.lr=0.5", "optimizer.lr = 0.25", "model.name=mlp", "job.name=\"a\"",
       "model.hidden=[32, 16]", "job.seed=7", "checkpoint.directory=/tmp/x y",
       "optimizer.schedule.kind=step", "optimizer.momentum=0.9", "optimizer.nesterov=true"});
  EXPECT_EQ(job.optimizer.lr, 0.25);
  EXPECT_EQ(job.model.name, "mlp");
  EXPECT_EQ(job.name, "a");
  EXPECT_EQ(job.model.hidden, (std::vector<std::uint32_t>{32, 16}));
  EXPECT_EQ(job.seed, 7u);
  EXPECT_EQ(job.checkpoint.directory, "/tmp/x y");
  EXPECT_EQ(job.optimizer.schedule.kind, "step");
  EXPECT_TRUE(job.optimizer.nesterov);
}

TEST(ParseJob, an_override_of_a_string_takes_a_number_as_text) {
  EXPECT_EQ(parse_job(kSmallestJob, {}, {"job.name=2024"})->name, "2024");
}

TEST(ParseJob, an_override_cannot_smuggle_in_other_keys) {
  EXPECT_THAT(refusal(kSmallestJob, {"job.ranks=2\nother=3"}), HasSubstr("must be an integer"));
}

TEST(ParseJob, an_override_may_give_a_required_key) {
  const std::string text = replaced("batch = 512", "");
  EXPECT_EQ(parse_job(text, {}, {"data.batch=16"})->data.batch, 16u);
}

TEST(ParseJob, an_unknown_key_is_named_with_its_place_and_value_and_what_was_meant) {
  EXPECT_EQ(
      refusal(with("[optimizer]\nmomentun = 0.9")),
      "mnist.toml:12:1: there is no key 'optimizer.momentun' (its value is 0.9); did you mean "
      "'optimizer.momentum'?");
  EXPECT_THAT(refusal(with("[optimiser]\nlr = 0.9")), HasSubstr("did you mean 'optimizer.lr'?"));
  EXPECT_THAT(refusal("ranks = 8\n" + kSmallestJob),
              AllOf(StartsWith("mnist.toml:1:1: "), HasSubstr("did you mean 'job.ranks'?")));
  EXPECT_THAT(refusal(with("zzzzzzzzzzzz = 1")), HasSubstr("docs/job-file.md"));
  EXPECT_THAT(refusal(kSmallestJob, {"lr=0.1"}),
              AllOf(StartsWith("override 'lr=0.1': "), HasSubstr("did you mean 'optimizer.lr'?")));
}

TEST(ParseJob, unknown_tables_are_refused_even_when_empty) {
  EXPECT_THAT(refusal(with("[modle]")), HasSubstr("no key 'modle'"));
  EXPECT_THAT(refusal(with("[a.b.c]\nd = 1")), HasSubstr("no key 'a.b.c.d'"));
  EXPECT_THAT(refusal(with("[[optimizer.step]]\nlr = 1")), HasSubstr("no key 'optimizer.step'"));
}

TEST(ParseJob, a_value_in_place_of_a_table_is_told_apart) {
  EXPECT_THAT(refusal("optimizer = 3\n" + kSmallestJob), HasSubstr("write [optimizer]"));
  EXPECT_THAT(refusal(with("[optimizer]\nschedule = \"cosine\"")),
              HasSubstr("write [optimizer.schedule]"));
}

TEST(ParseJob, the_first_of_several_mistakes_is_reported) {
  EXPECT_THAT(refusal(with("[optimizer]\nzz = 1\naa = 2")), HasSubstr("'optimizer.zz'"));
}

TEST(ParseJob, a_wrong_type_is_named_with_the_right_one) {
  EXPECT_EQ(
      refusal(replaced("ranks = 8", "ranks = \"8\"")),
      "mnist.toml:2:1: 'job.ranks' is '8' (a string), but must be an integer from 1 to 65536");
  EXPECT_THAT(refusal(replaced("ranks = 8", "ranks = 8.0")), HasSubstr("(a float)"));
  EXPECT_THAT(refusal(replaced("\"lenet5\"", "5")), HasSubstr("must be a string, in quotes"));
  EXPECT_THAT(refusal(replaced("\"lenet5\"", "{ a = 1 }")), HasSubstr("(a table)"));
  EXPECT_THAT(refusal(with("[optimizer]\nlr = true")), HasSubstr("must be a number"));
  EXPECT_THAT(refusal(with("[optimizer]\nnesterov = 1")), HasSubstr("must be true or false"));
  EXPECT_THAT(refusal(kSmallestJob, {"model.hidden=3"}), HasSubstr("an array of integers"));
  EXPECT_THAT(refusal(kSmallestJob, {"model.hidden=[3, 0]"}), HasSubstr("from 1 to"));
  EXPECT_THAT(refusal(kSmallestJob, {"optimizer.lr=fast"}),
              HasSubstr("'optimizer.lr' is 'fast' (a string), but must be a number"));
}

TEST(ParseJob, a_value_out_of_range_is_named_with_the_range) {
  EXPECT_EQ(refusal(replaced("ranks = 8", "ranks = -1")),
            "mnist.toml:2:1: 'job.ranks' is -1, but must be an integer from 1 to 65536");
  EXPECT_EQ(refusal(with("[optimizer]\nlr = 0")),
            "mnist.toml:12:1: 'optimizer.lr' is 0.0, but must be a number above 0 and at most "
            "1000000");
  EXPECT_THAT(refusal(with("[optimizer]\nmomentum = 1.0")), HasSubstr("at least 0 and below 1"));
  EXPECT_THAT(refusal(with("[optimizer]\nlr = nan")), HasSubstr("'optimizer.lr' is nan"));
  EXPECT_THAT(refusal(with("[optimizer]\nlr = inf")), HasSubstr("'optimizer.lr' is inf"));
  EXPECT_THAT(refusal(replaced("ranks = 8", "ranks = 99999999999")), HasSubstr("99999999999"));
  EXPECT_THAT(refusal(with("std = 0")), HasSubstr("'data.std'"));
  EXPECT_THAT(refusal(replaced("train-images.gz", "")), HasSubstr("must name a file"));
}

/// A job on colour images with `lines` added to its table of data.
std::string cifar(const std::string& lines) {
  return "[job]\nranks = 2\n[model]\nname = \"resnet18\"\n[data]\nformat = \"cifar10\"\nbatch = "
         "8\n" +
         lines + "\n";
}

TEST(ParseJob, a_mean_is_one_number_or_one_for_each_channel) {
  const auto job = parse_job(
      cifar("directory = \"d\"\nmean = [0.5, 0, 1e-1]\nstd = 2\naugment = \"crop_flip\""));
  ASSERT_TRUE(job.ok()) << job.error().message;
  EXPECT_EQ(job->data.mean, (std::vector<double>{0.5, 0, 0.1}));
  EXPECT_EQ(job->data.std, std::vector<double>{2});
  EXPECT_THAT(job->to_toml(), HasSubstr("mean = [0.5, 0.0, 0.1]\nstd = 2.0\n"));
  EXPECT_EQ(parse_job(job->to_toml())->to_toml(), job->to_toml());
  const auto mean = [](const std::string& text) {
    return refusal(cifar("directory = \"d\"\nmean = " + text));
  };
  EXPECT_THAT(mean("[0.5, 0.5]"), HasSubstr("have 3 channels; give one number, or one for each"));
  EXPECT_THAT(mean("[]"), HasSubstr("but must be one number, or one for each channel"));
  EXPECT_THAT(mean("[1, \"2\", 3]"), HasSubstr("must be a number, or an array of one for each"));
  EXPECT_THAT(mean("[1, nan, 3]"), HasSubstr("'data.mean' is [1.0, nan, 3.0]"));
  EXPECT_THAT(refusal(with("mean = [1, 2]")), HasSubstr("have 1 channel; give one number"));
}

TEST(ParseJob, a_format_says_which_keys_it_needs_and_which_it_has_no_use_for) {
  EXPECT_THAT(refusal(cifar("")), HasSubstr("data.format \"cifar10\" needs it: it must name the "
                                            "folder"));
  EXPECT_THAT(refusal(cifar("directory = \"d\"\ntrain = \"x\"")),
              HasSubstr("'data.train' is \"x\", but data.format \"cifar10\" has no use for it"));
  EXPECT_THAT(refusal(with("image_size = 32")), HasSubstr("'data.image_size' is 32"));
  EXPECT_THAT(refusal(with("augment = \"crop_flip\"")), HasSubstr("'data.augment'"));
  EXPECT_THAT(refusal(with("token_type = \"i32\"")), HasSubstr("'data.token_type'"));
  const auto of = [](const std::string& format, const std::string& lines) {
    auto text = cifar("train = \"a\"\ntest = \"b\"\n" + lines);
    return text.replace(text.find("cifar10"), 7, format);
  };
  EXPECT_THAT(refusal(of("images", "")), HasSubstr("'data.image_size' is 0"));
  EXPECT_THAT(refusal(of("text", "tokens = 8")), HasSubstr("'model.classes' is 10"));
  EXPECT_THAT(refusal(of("tokens", "")), HasSubstr("'data.tokens' is 0"));
  EXPECT_THAT(refusal(of("tokens", "tokens = 8\nmean = 0.5")), HasSubstr("'data.mean' is 0.5"));
  EXPECT_TRUE(parse_job(of("tokens", "tokens = 8\ntoken_type = \"i32\"")).ok());
  EXPECT_TRUE(parse_job(of("tar", "image_size = 64\nbad_samples = \"skip\"")).ok());
}

TEST(ParseJob, a_key_of_another_model_is_refused) {
  const auto refusal_of = [](std::vector<std::string> overrides) {
    return refusal(kSmallestJob, overrides);
  };
  EXPECT_THAT(refusal_of({"model.layers=2"}),
              HasSubstr("'model.layers' is 2, but a lenet5 has no"));
  EXPECT_THAT(refusal_of({"model.width=8"}),
              HasSubstr("take the model resnet18, vgg16, gpt or lstm"));
  EXPECT_THAT(refusal_of({"model.small_images=true"}), HasSubstr("'model.small_images' is true"));
  EXPECT_THAT(refusal_of({"model.name=vgg16", "model.layers=2"}),
              HasSubstr("'model.layers' is 2, but a vgg16 has no"));
  EXPECT_THAT(refusal_of({"model.name=lstm", "model.heads=2"}),
              HasSubstr("'model.heads' is 2, but a lstm has no"));
  for (const char* name : {"vgg16", "vgg16_bn", "lstm", "lstm_lm"})
    EXPECT_TRUE(
        parse_job(kSmallestJob, {}, {std::string("model.name=") + name, "model.width=8"}).ok())
        << name;
  EXPECT_THAT(refusal_of({"model.name=gpt"}), HasSubstr("'model.layers' is 0, but a gpt needs it"));
  EXPECT_THAT(refusal_of({"model.name=gpt", "model.layers=2", "model.width=10", "model.heads=3"}),
              HasSubstr("'model.heads' is 3, but must divide model.width, which is 10"));
}

TEST(ParseJob, parameters_that_start_afresh_are_an_array_of_names) {
  const auto job = *parse_job(kSmallestJob, {}, {"model.weights=w", "model.fresh=['a', \"b\"]"});
  EXPECT_EQ(job.model.fresh, (std::vector<std::string>{"a", "b"}));
  for (const char* value : {"fc.weight", "[1]", "['a', 2]", "['a', '']"})
    EXPECT_THAT(refusal(kSmallestJob, {"model.weights=w", std::string("model.fresh=") + value}),
                HasSubstr("'model.fresh' is "));
  EXPECT_THAT(refusal(kSmallestJob, {"model.fresh=['a']"}), HasSubstr("name a file"));
}

TEST(ParseJob, a_name_outside_the_choices_is_named_with_them) {
  EXPECT_THAT(
      refusal(replaced("lenet5", "lenet-5")),
      AllOf(
          StartsWith("mnist.toml:4:1: 'model.name' is \"lenet-5\", but must be one of lenet5, mlp"),
          EndsWith("; did you mean \"lenet5\"?")));
  EXPECT_THAT(refusal(with("[optimizer]\nname = \"adagrad\"")),
              HasSubstr("but must be one of sgd, adam, adamw, lamb, lars"));
}

TEST(ParseJob, a_missing_key_is_named_with_its_table) {
  EXPECT_EQ(refusal(replaced("ranks = 8\n", "")),
            "mnist.toml: the key 'job.ranks' is missing; add it under [job]");
  EXPECT_THAT(refusal(""), HasSubstr("'job.ranks' is missing"));
}

TEST(ParseJob, a_batch_that_the_ranks_cannot_share_is_named_with_those_they_can) {
  EXPECT_EQ(
      refusal(replaced("batch = 512", "batch = 500")),
      "mnist.toml:10:1: 'data.batch' is 500, which the 8 ranks cannot share equally; take 496 "
      "or 504");
  EXPECT_THAT(refusal(kSmallestJob, {"data.batch=3"}),
              AllOf(StartsWith("override 'data.batch=3'"), HasSubstr("take 8")));
}

TEST(ParseJob, text_that_is_not_toml_is_refused_with_its_place) {
  EXPECT_THAT(refusal("[job\nranks = 8"), StartsWith("mnist.toml:1:"));
  EXPECT_THAT(refusal("[job]\nranks = 8\nranks = 9"), StartsWith("mnist.toml:3:"));
  EXPECT_THAT(refusal("[job]\nname = \"\xff\""), StartsWith("mnist.toml:2:"));
  EXPECT_THAT(refusal(std::string((1 << 20) + 1, '#')), HasSubstr("too long"));
  std::string deep = "a=1\n";
  for (int i = 0; i < 100'000; ++i) deep += "a.";
  EXPECT_THAT(refusal(deep + "b=1"), AllOf(StartsWith("mnist.toml:2:"), HasSubstr("dots")));
}

TEST(ParseJob, an_override_without_key_or_value_says_how_to_write_it) {
  for (const char* text : {"optimizer.lr", "=3", ""})
    EXPECT_THAT(refusal(kSmallestJob, {text}), HasSubstr("key=value")) << text;
}

TEST(ParseJob, any_prefix_of_a_job_is_parsed_or_refused) {
  const std::string text = smallest_job().to_toml();
  for (std::size_t n = 0; n < text.size(); ++n) (void)parse_job(text.substr(0, n));
}

/// A folder that is removed with all that is in it.
class LoadJob : public testing::Test {
protected:
  LoadJob() {
    std::string name = (std::filesystem::temp_directory_path() / "troupe-config-XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  ~LoadJob() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(const std::string& text) const {
    std::ofstream(folder_ / "job.toml") << text;
    return folder_ / "job.toml";
  }

  std::filesystem::path folder_;
};

TEST_F(LoadJob, data_is_relative_to_the_file_and_checkpoints_to_the_working_folder) {
  const JobConfig job = *load_job(write(with("directory = \"data\"\n")));
  EXPECT_EQ(job.data.directory, folder_ / "data");
  EXPECT_EQ(job.data.train_images, folder_ / "data" / "train-images.gz");
  EXPECT_EQ(job.data.test_labels, folder_ / "data" / "test-labels.gz");
  EXPECT_EQ(job.checkpoint.directory, std::filesystem::current_path() / "runs" / "job");
}

TEST_F(LoadJob, without_a_directory_names_are_relative_to_the_file) {
  EXPECT_EQ(load_job(write(kSmallestJob))->data.train_images, folder_ / "train-images.gz");
}

TEST_F(LoadJob, weights_are_relative_to_the_file_whatever_the_datas_directory_is) {
  const auto text = replaced("name = \"lenet5\"", "name = \"lenet5\"\nweights = \"a/w\"");
  EXPECT_EQ(load_job(write(text), {"data.directory=full"})->model.weights, folder_ / "a" / "w");
  EXPECT_EQ(load_job(write(text), {"model.weights=w"})->model.weights,
            std::filesystem::current_path() / "w");
}

TEST_F(LoadJob, absolute_names_stay) {
  const auto job = *load_job(write(replaced("train-images.gz", "/data/train")));
  EXPECT_EQ(job.data.train_images, "/data/train");
}

TEST_F(LoadJob, paths_of_overrides_are_relative_to_the_working_folder) {
  const auto job = *load_job(write(kSmallestJob), {"data.directory=full"});
  EXPECT_EQ(job.data.train_images, std::filesystem::current_path() / "full" / "train-images.gz");
}

TEST_F(LoadJob, what_it_prints_is_the_same_job_anywhere) {
  const auto job = *load_job(write(with("directory = \"../data\"")));
  EXPECT_EQ(parse_job(job.to_toml())->to_toml(), job.to_toml());
  EXPECT_EQ(parse_job(job.to_toml(), {.folder = "/a", .working_folder = "/b"})->to_toml(),
            job.to_toml());
}

TEST_F(LoadJob, a_file_that_is_not_there_or_no_file_is_named) {
  auto missing = load_job(folder_ / "nope.toml");
  EXPECT_EQ(missing.code(), Code::not_found);
  EXPECT_THAT(missing.error().message, HasSubstr((folder_ / "nope.toml").string()));
  EXPECT_EQ(load_job(folder_).code(), Code::invalid_argument);
}

TEST_F(LoadJob, errors_name_the_file_as_it_was_given) {
  const auto file = write("[job]\nrank = 8");
  EXPECT_THAT(load_job(file).error().message, StartsWith(file.string() + ":2:1: "));
}

}  // namespace
}  // namespace troupe::train
