-- oldest code: 1
-- The first schema.  Times are microseconds since 1970 in UTC, lists are JSON arrays.  Texts compare as bytes of
-- UTF-8, which is the order of code points and so the order of Python.

CREATE TABLE trioflow_groups (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    created INTEGER NOT NULL,
    -- Exactly one default tenant: a column that may not be empty and names a tenant of this group.
    default_tenant TEXT NOT NULL,
    FOREIGN KEY (id, default_tenant) REFERENCES trioflow_tenants (group_id, name) DEFERRABLE INITIALLY DEFERRED
) STRICT;

CREATE TABLE trioflow_tenants (
    group_id INTEGER NOT NULL REFERENCES trioflow_groups (id) DEFERRABLE INITIALLY DEFERRED,
    name TEXT NOT NULL,
    created INTEGER NOT NULL,
    PRIMARY KEY (group_id, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE trioflow_engines (
    group_id INTEGER NOT NULL,
    engine_id TEXT NOT NULL,
    incarnation INTEGER NOT NULL,
    handler_names TEXT NOT NULL,
    opened INTEGER NOT NULL,
    PRIMARY KEY (group_id, engine_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE trioflow_definitions (
    group_id INTEGER NOT NULL,
    key TEXT NOT NULL,
    version INTEGER NOT NULL,
    name TEXT NOT NULL,
    digest TEXT NOT NULL,
    digest_algorithm INTEGER NOT NULL,
    handler_names TEXT NOT NULL,
    content BLOB NOT NULL,
    content_hash TEXT NOT NULL,
    deployed INTEGER NOT NULL,
    PRIMARY KEY (group_id, key, version)
) STRICT;

-- ---------------------------------------------------------------- instances

CREATE TABLE trioflow_instances (
    group_id INTEGER NOT NULL,
    instance_id TEXT NOT NULL,
    root_id TEXT NOT NULL,
    parent_id TEXT,
    process_key TEXT NOT NULL,
    version INTEGER NOT NULL,
    digest TEXT NOT NULL,
    digest_algorithm INTEGER NOT NULL,
    document_schema INTEGER NOT NULL,
    created INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    business_key TEXT,
    status TEXT NOT NULL,
    updated INTEGER NOT NULL,
    reason TEXT NOT NULL,
    has_incidents INTEGER NOT NULL,
    record_version INTEGER NOT NULL,
    commit_id TEXT NOT NULL,
    owner TEXT,
    incarnation INTEGER NOT NULL,
    drift TEXT NOT NULL DEFAULT '',
    failures INTEGER NOT NULL DEFAULT 0,
    failure TEXT NOT NULL DEFAULT '',
    retry_at INTEGER,
    PRIMARY KEY (group_id, instance_id)
) STRICT, WITHOUT ROWID;

-- Only what is owned: what is parked costs nothing here.
CREATE INDEX trioflow_instances_owned ON trioflow_instances (group_id, owner, instance_id) WHERE owner IS NOT NULL;

CREATE INDEX trioflow_instances_business ON trioflow_instances (group_id, business_key, instance_id)
    WHERE business_key IS NOT NULL;

CREATE INDEX trioflow_instances_process ON trioflow_instances (group_id, process_key, instance_id);

CREATE INDEX trioflow_instances_status ON trioflow_instances (group_id, status, instance_id);

CREATE INDEX trioflow_instances_incidents ON trioflow_instances (group_id, instance_id) WHERE has_incidents = 1;

CREATE INDEX trioflow_instances_not_resumed ON trioflow_instances (group_id, instance_id)
    WHERE drift <> '' OR failures > 0;

-- With rowids: a piece may be large, and a row of a table without them should not be.
CREATE TABLE trioflow_pieces (
    group_id INTEGER NOT NULL,
    instance_id TEXT NOT NULL,
    slot INTEGER NOT NULL,
    piece BLOB NOT NULL,
    PRIMARY KEY (group_id, instance_id, slot)
) STRICT;

CREATE TABLE trioflow_counts (
    group_id INTEGER NOT NULL,
    status TEXT NOT NULL,
    instances INTEGER NOT NULL,
    PRIMARY KEY (group_id, status)
) STRICT, WITHOUT ROWID;

CREATE TABLE trioflow_pins (
    group_id INTEGER NOT NULL,
    process_key TEXT NOT NULL,
    version INTEGER NOT NULL,
    instances INTEGER NOT NULL,
    PRIMARY KEY (group_id, process_key, version)
) STRICT, WITHOUT ROWID;

-- ---------------------------------------------------------------- the wait index

CREATE TABLE trioflow_timers (
    group_id INTEGER NOT NULL,
    instance_id TEXT NOT NULL,
    wait_id INTEGER NOT NULL,
    due INTEGER NOT NULL,
    PRIMARY KEY (group_id, instance_id, wait_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX trioflow_timers_due ON trioflow_timers (group_id, due, instance_id, wait_id);

CREATE TABLE trioflow_tasks (
    group_id INTEGER NOT NULL,
    instance_id TEXT NOT NULL,
    wait_id INTEGER NOT NULL,
    node_id TEXT NOT NULL,
    name TEXT NOT NULL,
    process_key TEXT NOT NULL,
    created INTEGER NOT NULL,
    owner TEXT,
    assignee TEXT,
    candidate_users TEXT NOT NULL,
    candidate_groups TEXT NOT NULL,
    priority INTEGER NOT NULL,
    due INTEGER,
    business_key TEXT,
    tenant TEXT NOT NULL,
    PRIMARY KEY (group_id, instance_id, wait_id)
) STRICT, WITHOUT ROWID;

-- Who may see a task, as lines to look into: 'owner' and a person; or, while nobody owns it, 'anyone' and '',
-- 'user' and a person, 'group' and a group.
CREATE TABLE trioflow_task_lines (
    group_id INTEGER NOT NULL,
    kind TEXT NOT NULL,
    who TEXT NOT NULL,
    instance_id TEXT NOT NULL,
    wait_id INTEGER NOT NULL,
    PRIMARY KEY (group_id, kind, who, instance_id, wait_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX trioflow_task_lines_task ON trioflow_task_lines (group_id, instance_id, wait_id);

CREATE TABLE trioflow_incidents (
    group_id INTEGER NOT NULL,
    instance_id TEXT NOT NULL,
    wait_id INTEGER NOT NULL,
    incident_kind TEXT NOT NULL,
    node_id TEXT NOT NULL,
    process_key TEXT NOT NULL,
    message TEXT NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    causes TEXT NOT NULL,
    PRIMARY KEY (group_id, instance_id, wait_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX trioflow_incidents_state ON trioflow_incidents (group_id, state, instance_id, wait_id);

-- ---------------------------------------------------------------- messages

CREATE TABLE trioflow_messages (
    number INTEGER PRIMARY KEY,  -- the order of sending
    group_id INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    key TEXT,
    business_key TEXT,
    message_id TEXT,
    payload BLOB NOT NULL,
    state TEXT NOT NULL,  -- buffered, assigned, consumed, expired
    instance_id TEXT,  -- who has it, or had it
    expires INTEGER NOT NULL,
    remembered INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX trioflow_messages_known ON trioflow_messages (group_id, tenant, name, message_id)
    WHERE message_id IS NOT NULL;

CREATE INDEX trioflow_messages_key ON trioflow_messages (group_id, tenant, name, key) WHERE state = 'buffered';

CREATE INDEX trioflow_messages_business ON trioflow_messages (group_id, tenant, name, business_key)
    WHERE state = 'buffered' AND business_key IS NOT NULL;

CREATE INDEX trioflow_messages_expires ON trioflow_messages (group_id, expires) WHERE state = 'buffered';

CREATE INDEX trioflow_messages_remembered ON trioflow_messages (group_id, remembered)
    WHERE state IN ('consumed', 'expired');

CREATE TABLE trioflow_subscriptions (
    number INTEGER PRIMARY KEY,  -- the order of arming
    group_id INTEGER NOT NULL,
    instance_id TEXT NOT NULL,
    wait_id INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    key TEXT,
    business_key TEXT,
    delivery INTEGER,  -- what it has been assigned and has not consumed; it is free without
    UNIQUE (group_id, instance_id, wait_id)
) STRICT;

CREATE INDEX trioflow_subscriptions_key ON trioflow_subscriptions (group_id, tenant, name, key)
    WHERE delivery IS NULL;

CREATE INDEX trioflow_subscriptions_business ON trioflow_subscriptions (group_id, tenant, name, business_key)
    WHERE delivery IS NULL AND key IS NULL AND business_key IS NOT NULL;

-- An id is never used again: who declines late must not meet another's delivery.
CREATE TABLE trioflow_deliveries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    group_id INTEGER NOT NULL,
    message INTEGER NOT NULL,
    instance_id TEXT NOT NULL,
    wait_id INTEGER NOT NULL
) STRICT;

CREATE INDEX trioflow_deliveries_instance ON trioflow_deliveries (group_id, instance_id);
