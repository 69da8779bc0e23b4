#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/model.hpp"
#include "kernels/shape.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels {

/// The size of a decoder; the defaults are GPT-2's smallest.
struct GptSize {
  std::int64_t layers = 12;
  std::int64_t heads = 12;
  std::int64_t width = 768;     ///< a multiple of the heads
  std::int64_t context = 1024;  ///< tokens of a sample
  std::int64_t vocabulary = 50257;
  float dropout = 0.0f;  ///< of the embeddings and of what each half of a layer adds
};

/// The size of a recurrent model.
struct LstmSize {
  std::int64_t layers = 1;
  std::int64_t width = 128;  ///< of its hidden state, and of lstm_lm's embedding
  float dropout = 0.0f;      ///< of what goes into its last linear layer, and of the embedding
};

/// What can be chosen about a model by name.
struct ModelConfig {
  Shape input{1, 28, 28};  ///< lenet5 needs [1, 28, 28]
  std::int64_t classes = 10;
  std::vector<std::int64_t> hidden = {128, 64};  ///< mlp: sizes of the hidden layers
  /// resnet: begins with a 3x3 convolution and no pooling, for images of 28 to 64 pixels, as in the
  /// CIFAR experiments of the paper.
  bool small_images = false;
  /// resnet, vgg: channels of its first stage; others have 2, 4 and 8 times as many.
  std::int64_t width = 64;
  bool synchronized_batch_norm = false;  ///< models with batch norms: BatchNorm::synchronized
  GptSize gpt = {};                      ///< gpt, which takes nothing else
  LstmSize lstm = {};                    ///< lstm, lstm_lm; which also take input and classes
};

/// "lenet5", "mlp", "resnet18", "resnet34", "resnet50", "resnet101", "vgg16", "vgg16_bn", "gpt",
/// "lstm" or "lstm_lm". Errors: `not_found` with the names that are there, `invalid_argument` for
/// synchronized batch norms where there are none, or as ModelBuilder::build.
///
/// lenet5: conv1 (6 of 5x5, padding 2), conv2 (16 of 5x5), each with ReLU and 2x2 max pooling; fc1
/// (120), fc2 (84), fc3 (classes). mlp: fc1, fc2, ... with ReLU between.
/// resnet: He, Zhang, Ren, Sun, "Deep residual learning for image recognition" (2015), with the
/// stride of a bottleneck in its 3x3 convolution; parameters are named as torchvision's.
/// vgg16: Simonyan, Zisserman, "Very deep convolutional networks for large-scale image
/// recognition" (2014), configuration D, for images of 32 pixels a side and more, with adaptive
/// average pooling to 7 by 7 before its linear layers and dropout of a half after the first two;
/// vgg16_bn with batch norm after each convolution. Named and initialized as torchvision's. With
/// another width its hidden linear layers have 64 times as many features.
/// gpt: Radford et al., "Language models are unsupervised multitask learners" (2019): a decoder
/// with the norms before attention and MLP, learned positions and a head tied to the embedding.
/// From token ids [context] to [context, vocabulary]. Parameters are named as in the published
/// checkpoints of GPT-2, whose weights of linear layers are the transpose, [in, out], of ours.
/// lstm: an LSTM over [time, features], or over the rows of images [1, height, width], whose last
/// hidden state a linear layer, `fc`, makes into classes.
/// lstm_lm: a language model, from token ids [tokens] to [tokens, classes]: an embedding,
/// `encoder`, an LSTM, `rnn`, and a linear layer, `decoder`, as in PyTorch's examples.
Result<Model> make_model(std::string_view name, const ModelConfig& config = {});

}  // namespace troupe::kernels
