@0xe83b1f70c95a42d6;
# How nodes join, leave and watch each other. A node talks to the head only.

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
  host @4 :Text;           # equal means: the same machine and namespace
  process @5 :UInt32;      # pid there
  slots @6 :UInt32;        # ranks it computes at the same time
  joined @7 :UInt64;       # generation at which it came in: the order of joining
  draining @8 :Bool;       # it is to leave, and gets no new work
}

struct Membership {
  union {
    join @0 :Join;            # node -> head, first, on the connection for actors
    welcome @1 :Welcome;      # head -> node: connect to all of these
    mesh @2 :Void;            # node -> head: connected to all that the welcome named
    joined @3 :View;          # head -> node: you are in, and this is the view that has you
    refused @4 :Reason;       # head -> node: you are not, and why
    view @5 :ViewChanged;     # head -> nodes: the members have changed, and these are they
    leave @6 :Void;           # node -> head: wants to go
    released @7 :Void;        # head -> node: may go
    heartbeat @8 :Heartbeat;  # node -> head, and back as the answer
    suspect @9 :Suspicion;    # node -> head: lost a peer
    fenced @10 :Reason;       # head -> node: you are out; stop what you do
    ended @11 :Reason;        # head -> nodes: there is no cluster any more
    forget @12 :NodeId;       # head -> node on its way in: no need to connect to this one
    takeover @13 :Takeover;   # new head -> node: from now on I decide
    followed @14 :Followed;   # node -> new head: so be it
    superseded @15 :UInt64;   # node -> former head: another one leads, with this term
    drain @16 :NodeId;        # node -> head: that member is to leave, and gets no new work
    amended @17 :Amendment;   # head -> nodes: the members have changed by this
  }

  struct Join {
    protocol @0 :UInt32;
    member @1 :Member;
  }
  struct Welcome {
    you @0 :Member;           # with the name under which others will know it
    earlier @1 :List(Member); # to be connected to; the head is among them
    periodNanos @2 :UInt64;   # of heartbeats, the same in the whole cluster
    limitNanos @3 :UInt64;    # silence that makes a node suspect
    headlessNanos @4 :UInt64; # how long nodes stand without a head
    term @5 :UInt64;          # of the head
  }
  struct Takeover {
    protocol @0 :UInt32;
    term @1 :UInt64;          # the higher one counts
    generation @2 :UInt64;    # of the last view that the new head knows of
    head @3 :Member;
    periodNanos @4 :UInt64;
    limitNanos @5 :UInt64;
    headlessNanos @6 :UInt64;
  }
  struct Followed {
    term @0 :UInt64;
    view @1 :View;            # the node's, if it is of a later generation; else null
  }
  struct View {
    generation @0 :UInt64;
    head @1 :NodeId;
    members @2 :List(Member);
  }
  struct ViewChanged {
    view @0 :View;
    departures @1 :List(Departure);
  }
  struct Amendment {
    generation @0 :UInt64;    # afterwards; for who has the one before
    changed @1 :List(Member); # or new
    departures @2 :List(Departure);
    members @3 :UInt64;       # how many there are afterwards
  }
  struct Departure {
    node @0 :NodeId;
    name @1 :Text;
    reason @2 :Reason;
  }
  struct Reason {
    code @0 :UInt16;
    text @1 :Text;
  }
  struct Heartbeat {
    generation @0 :UInt64;
    sequence @1 :UInt64;
    deaf @2 :Bool;            # the node has not heard of the head for longer than the limit
  }
  struct Suspicion {
    node @0 :NodeId;
    reason @1 :Reason;
  }
}
