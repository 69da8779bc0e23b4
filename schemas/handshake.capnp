@0xa7d9be20c4f3816d;
# What two nodes say to each other before anything else is read from either.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::schema");

struct Handshake {
  union {
    hello @0 :Hello;     # first, both sides
    proof @1 :Data;      # second, both sides: HMAC-SHA256(token, role, own nonce, other's nonce, both node ids)
    accept @2 :Void;     # third: the proof holds
    refuse @3 :Refusal;  # instead of any: what is wrong; the connection closes
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
