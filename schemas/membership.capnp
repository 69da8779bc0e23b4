@0xe83b1f70c95a42d6;
# How nodes join, leave and watch each other.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::schema");

struct NodeId {
  high @0 :UInt64;
  low @1 :UInt64;
}

struct Address {
  host @0 :Text;
  port @1 :UInt16;
}

struct Member {
  node @0 :NodeId;
  name @1 :Text;
  address @2 :Address;     # of the transport that carries actors
  liveness @3 :Address;    # of the transport that carries heartbeats
  host @4 :Text;
  process @5 :UInt32;
  slots @6 :UInt32;        # cpu slots it offers
  joined @7 :UInt64;       # generation at which it came in: the order of joining
}

struct Membership {
  union {
    join @0 :Member;             # node -> head
    joined @1 :View;             # head -> node: you are in
    refused @2 :Refusal;         # head -> node: you are not, and why
    view @3 :View;               # head -> nodes: the members have changed
    leave @4 :Void;              # node -> head: wants to go
    released @5 :Void;           # head -> node: may go
    heartbeat @6 :Heartbeat;     # node <-> head
    suspect @7 :Suspicion;       # node -> head: lost a peer
    fenced @8 :Refusal;          # head -> node: you are out; stop what you do
    mesh @9 :UInt64;             # node -> head: connected to all of this generation
  }

  struct View {
    generation @0 :UInt64;
    members @1 :List(Member);
    head @2 :NodeId;
  }
  struct Refusal {
    code @0 :UInt16;
    reason @1 :Text;
  }
  struct Heartbeat {
    generation @0 :UInt64;
    sequence @1 :UInt64;
  }
  struct Suspicion {
    node @0 :NodeId;
    reason @1 :Text;
  }
}
