-- Whom a change concerns, found out by SQLite itself in the transaction of the change.
-- Generated from courses.puml: 2 classes, 1 association: attends implicit.
-- Change the model and generate again rather than this. All names begin with tidings_.

BEGIN;

CREATE TABLE tidings_watches (
    subscriber_class TEXT NOT NULL,
    subscriber_key TEXT NOT NULL,
    class TEXT NOT NULL,
    key TEXT -- NULL: all objects of the class
);

CREATE TABLE tidings_changes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    kind TEXT NOT NULL, -- insert, update, delete, link, unlink
    class TEXT NOT NULL, -- of which the object is made
    family TEXT NOT NULL, -- the topmost class above it: with the key it says which object it is
    key TEXT NOT NULL,
    attributes TEXT, -- of an update: what is another, as a JSON array
    before TEXT, -- their values, as a JSON object
    after TEXT,
    association TEXT, -- of a link: with what
    other_family TEXT,
    other_key TEXT
);

CREATE TABLE tidings_reached (
    change INTEGER NOT NULL,
    family TEXT NOT NULL,
    key TEXT NOT NULL,
    PRIMARY KEY (change, family, key)
) WITHOUT ROWID;

CREATE TABLE tidings_steps (
    change INTEGER NOT NULL,
    family TEXT NOT NULL,
    key TEXT NOT NULL,
    association TEXT NOT NULL,
    forwards INTEGER NOT NULL, -- 1: from source to target
    to_family TEXT NOT NULL,
    to_key TEXT NOT NULL
);

CREATE TABLE tidings_hits (
    change INTEGER NOT NULL,
    subscriber_family TEXT NOT NULL,
    subscriber_key TEXT NOT NULL,
    family TEXT NOT NULL, -- the changed object that concerns the subscriber
    key TEXT NOT NULL,
    how TEXT NOT NULL, -- watched, class, implicit
    by TEXT NOT NULL, -- the class that is watched, or the association
    forwards INTEGER NOT NULL
);

CREATE INDEX tidings_watches_by_key ON tidings_watches (key);

CREATE INDEX tidings_watches_by_class ON tidings_watches (class, key);

CREATE INDEX tidings_changes_by_object ON tidings_changes (family, key);

CREATE INDEX tidings_steps_by_change ON tidings_steps (change);

CREATE INDEX tidings_hits_by_change ON tidings_hits (change);

CREATE INDEX tidings_attends_by_course_id ON "attends" ("course_id");

CREATE TRIGGER tidings_changes_told AFTER INSERT ON tidings_changes
BEGIN
    -- What counts as changed with it, by which steps, and who is told.
    -- Changed are the object itself and all that is reached along propagating associations.
    INSERT INTO tidings_reached (change, family, key)
    SELECT NEW.id, family, key FROM (
        WITH RECURSIVE reached (family, key) AS (
            SELECT NEW.family, NEW.key
        )
        SELECT family, key FROM reached
    ) AS found;
    -- Told are those who watch one of them or its class, and those at the far end of implicit associations.
    INSERT INTO tidings_hits (change, subscriber_family, subscriber_key, family, key, how, by, forwards)
    SELECT NEW.id, w.subscriber_class, w.subscriber_key, r.family, r.key, 'watched', '', 0
    FROM tidings_reached AS r CROSS JOIN tidings_watches AS w
    WHERE r.change = NEW.id AND w.key = r.key AND w.class = r.family
    UNION
    SELECT NEW.id, w.subscriber_class, w.subscriber_key, r.family, r.key, 'class', 'Student', 0
    FROM tidings_reached AS r CROSS JOIN tidings_watches AS w
    WHERE r.change = NEW.id AND r.family = 'Student' AND w.class = 'Student' AND w.key IS NULL
    UNION
    SELECT NEW.id, w.subscriber_class, w.subscriber_key, r.family, r.key, 'class', 'Course', 0
    FROM tidings_reached AS r CROSS JOIN tidings_watches AS w
    WHERE r.change = NEW.id AND r.family = 'Course' AND w.class = 'Course' AND w.key IS NULL
    UNION
    SELECT NEW.id, 'Student', CAST(l."student_id" AS TEXT), r.family, r.key, 'implicit', 'attends', 0
    FROM tidings_reached AS r CROSS JOIN "attends" AS l
    WHERE r.change = NEW.id AND r.family = 'Course' AND l."course_id" = r.key AND l."student_id" IS NOT NULL;
END;

CREATE TRIGGER tidings_changes_forgotten AFTER DELETE ON tidings_changes
BEGIN
    -- With a change goes all that followed from it.
    DELETE FROM tidings_reached WHERE change = OLD.id;
    DELETE FROM tidings_steps WHERE change = OLD.id;
    DELETE FROM tidings_hits WHERE change = OLD.id;
END;

CREATE TRIGGER tidings_watches_checked BEFORE INSERT ON tidings_watches
BEGIN
    -- Only classes of the model can be watched or told.
    SELECT RAISE(ABORT, 'tidings_watches.class: the model has Student, Course') WHERE NEW.class NOT IN ('Student', 'Course');
    SELECT RAISE(ABORT, 'tidings_watches.subscriber_class: subscribers are Student') WHERE NEW.subscriber_class NOT IN ('Student');
END;

CREATE TRIGGER tidings_student_inserted AFTER INSERT ON "student"
BEGIN
    -- A row of student is a new Student.
    INSERT INTO tidings_changes (kind, class, family, key, after)
    SELECT 'insert', 'Student', 'Student', CAST(NEW."id" AS TEXT), (SELECT json_group_object(name, value) FROM (
        SELECT 'name' AS name, CASE typeof(NEW."name") WHEN 'blob' THEN hex(NEW."name") ELSE NEW."name" END AS value
    ) AS row_values);
END;

CREATE TRIGGER tidings_student_updated AFTER UPDATE OF "name" ON "student"
WHEN OLD."name" IS NOT NEW."name"
BEGIN
    -- A Student is another only if a value is: an update to the same value is none.
    INSERT INTO tidings_changes (kind, class, family, key, attributes, before, after)
    SELECT 'update', 'Student', 'Student', CAST(NEW."id" AS TEXT), json_group_array(name),
        json_group_object(name, was), json_group_object(name, became)
    FROM (
        SELECT 'name' AS name, CASE typeof(OLD."name") WHEN 'blob' THEN hex(OLD."name") ELSE OLD."name" END AS was, CASE typeof(NEW."name") WHEN 'blob' THEN hex(NEW."name") ELSE NEW."name" END AS became WHERE OLD."name" IS NOT NEW."name"
    ) AS changed;
END;

CREATE TRIGGER tidings_student_deleted BEFORE DELETE ON "student"
BEGIN
    -- Before a Student goes, while its links are still there.
    INSERT INTO tidings_changes (kind, class, family, key, before)
    SELECT 'delete', 'Student', 'Student', CAST(OLD."id" AS TEXT), (SELECT json_group_object(name, value) FROM (
        SELECT 'name' AS name, CASE typeof(OLD."name") WHEN 'blob' THEN hex(OLD."name") ELSE OLD."name" END AS value
    ) AS row_values);
END;

CREATE TRIGGER tidings_course_inserted AFTER INSERT ON "course"
BEGIN
    -- A row of course is a new Course.
    INSERT INTO tidings_changes (kind, class, family, key, after)
    SELECT 'insert', 'Course', 'Course', CAST(NEW."id" AS TEXT), (SELECT json_group_object(name, value) FROM (
        SELECT 'title' AS name, CASE typeof(NEW."title") WHEN 'blob' THEN hex(NEW."title") ELSE NEW."title" END AS value
    ) AS row_values);
END;

CREATE TRIGGER tidings_course_updated AFTER UPDATE OF "title" ON "course"
WHEN OLD."title" IS NOT NEW."title"
BEGIN
    -- A Course is another only if a value is: an update to the same value is none.
    INSERT INTO tidings_changes (kind, class, family, key, attributes, before, after)
    SELECT 'update', 'Course', 'Course', CAST(NEW."id" AS TEXT), json_group_array(name),
        json_group_object(name, was), json_group_object(name, became)
    FROM (
        SELECT 'title' AS name, CASE typeof(OLD."title") WHEN 'blob' THEN hex(OLD."title") ELSE OLD."title" END AS was, CASE typeof(NEW."title") WHEN 'blob' THEN hex(NEW."title") ELSE NEW."title" END AS became WHERE OLD."title" IS NOT NEW."title"
    ) AS changed;
END;

CREATE TRIGGER tidings_course_deleted BEFORE DELETE ON "course"
BEGIN
    -- Before a Course goes, while its links are still there.
    INSERT INTO tidings_changes (kind, class, family, key, before)
    SELECT 'delete', 'Course', 'Course', CAST(OLD."id" AS TEXT), (SELECT json_group_object(name, value) FROM (
        SELECT 'title' AS name, CASE typeof(OLD."title") WHEN 'blob' THEN hex(OLD."title") ELSE OLD."title" END AS value
    ) AS row_values);
END;

COMMIT;
