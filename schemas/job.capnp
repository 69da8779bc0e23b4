@0xb61c9a04d7e2f358;
# A job as the head keeps it and sends it to the nodes that run it.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::schema");

struct Job {
  id @0 :UInt64;
  name @1 :Text;
  config @2 :Text;           # the job file as TOML, overrides applied: canonical form
  configHash @3 :Text;       # of `config`; equal on all nodes
  ranks @4 :UInt32;
  directory @5 :Text;        # where checkpoints and results go
  resume @6 :Bool;
}

struct Placement {
  job @0 :UInt64;
  generation @1 :UInt64;
  nodeOfRank @2 :List(UInt32);  # index into `nodes`
  nodes @3 :List(Data);         # 16 bytes each
}
