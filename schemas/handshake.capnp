@0xa7d9be20c4f3816d;
# What two nodes say to each other before anything else is read from either.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::schema");

struct Handshake {
  union {
    hello @0 :Hello;     # first, both sides
    proof @1 :Data;      # second, both sides: HMAC-SHA256(token, role, both hellos as they were sent)
    accept @2 :Void;     # not used
    refuse @3 :Refusal;  # instead of any, or later: what is wrong; the connection closes
    access @4 :Access;   # third, both sides, once the other's proof holds: how to reach me
  }

  struct Access {
    address @0 :Data;      # of the UCX worker that serves this one peer
    session @1 :UInt64;    # stands in every frame that is sent to me
    probeAt @2 :UInt64;    # where in my memory...
    probeValue @3 :UInt64; # ...this value stands: who can read it there may read what I lend
  }

  struct Hello {
    protocol @0 :UInt32;
    node @1 :NodeId;
    nonce @2 :Data;         # 32 random bytes
    name @3 :Text;
    build @4 :Text;
    process @5 :UInt32;
    host @6 :Text;          # machine and namespace: equal on both sides means memory can be shared
    listenHost @7 :Text;
    listenPort @8 :UInt16;  # 0: does not listen
    hasToken @9 :Bool;
  }

  struct Refusal {
    code @0 :UInt16;
    reason @1 :Text;
  }

  struct NodeId {
    high @0 :UInt64;
    low @1 :UInt64;
  }
}
