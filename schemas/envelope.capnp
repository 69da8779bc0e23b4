@0xd2a4f3c18b6e5701;
# Head of one actor message between nodes. The body (the CAF-serialized message) follows it in the
# same frame; buffers follow as separate segments.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::schema");

struct Envelope {
  enum Kind {
    message @0;    # body: flags, the sender's handle if it is of a third node, stages, content
    monitor @1;    # tell me when `destination` ends
    down @2;       # body: error; `source` has ended
    link @3;       # `source` (theirs) is linked to `destination` (ours)
    unlink @4;
    lookup @5;     # body: a registered name
    found @6;      # answers `lookup`: source is the actor's number, 0 for none; body: its interface
    spawn @7;      # body: actor type, arguments
    spawned @8;    # answers `spawn`: source is the actor's number; body: error if it is 0
    exit @9;       # body: error; `source` (theirs), linked to `destination` (ours), has ended
  }
  kind @0 :Kind;
  source @1 :UInt64;       # actor number on the sending node, 0 for none
  destination @2 :UInt64;  # actor number on the receiving node
  messageId @3 :UInt64;    # CAF's message id, or the number of a lookup or spawn
  generation @4 :UInt64;   # of the placement that it belongs to, 0 for none
  bodyBytes @5 :UInt32;
}
