@0xb61c9a04d7e2f358;
# A job as a head keeps it in its control store, for the head that comes after it: what was asked
# for, written once, and how far it is, written as it goes.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::schema");

struct JobRequest {
  config @0 :Text;           # the job file as TOML, overrides applied
  nodes @1 :UInt32;          # how many to use; 0: all
  resume @2 :Bool;           # go on from the newest checkpoint
}

struct JobProgress {
  name @0 :Text;
  state @1 :Text;            # "waiting", "running", "done", "failed", "cancelled"
  step @2 :UInt64;           # steps done
  steps @3 :UInt64;          # of all epochs
  loss @4 :Float64;
  testAccuracy @5 :Float64;  # of the last epoch; negative: none yet
  message @6 :Text;
  sha256 @7 :Text;           # of the final weights
  begun @8 :Bool;            # its first step was about to begin
  firstStep @9 :UInt64;      # that it began with
  epochs @10 :UInt64;        # whose tests are done
  cancelled @11 :Bool;       # somebody asked for its end
  code @12 :UInt16;          # of the error it ended with; 0: none
}
