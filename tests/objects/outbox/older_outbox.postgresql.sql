-- Whom a change concerns, found out by PostgreSQL itself in the transaction of the change.
-- Generated from courses.puml: 2 classes, 1 association: attends implicit.
-- Change the model and generate again rather than this. All names begin with tidings_.

BEGIN;

CREATE TABLE tidings_watches (
    subscriber_class text NOT NULL,
    subscriber_key text NOT NULL,
    class text NOT NULL,
    key text -- NULL: all objects of the class
);

CREATE TABLE tidings_changes (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    kind text NOT NULL, -- insert, update, delete, link, unlink
    class text NOT NULL, -- of which the object is made
    family text NOT NULL, -- the topmost class above it: with the key it says which object it is
    key text NOT NULL,
    attributes jsonb, -- of an update: what is another, as a JSON array
    before jsonb, -- their values, as a JSON object
    after jsonb,
    association text, -- of a link: with what
    other_family text,
    other_key text
);

CREATE TABLE tidings_reached (
    change bigint NOT NULL,
    family text NOT NULL,
    key text NOT NULL,
    PRIMARY KEY (change, family, key)
);

CREATE TABLE tidings_steps (
    change bigint NOT NULL,
    family text NOT NULL,
    key text NOT NULL,
    association text NOT NULL,
    forwards integer NOT NULL, -- 1: from source to target
    to_family text NOT NULL,
    to_key text NOT NULL
);

CREATE TABLE tidings_hits (
    change bigint NOT NULL,
    subscriber_family text NOT NULL,
    subscriber_key text NOT NULL,
    family text NOT NULL, -- the changed object that concerns the subscriber
    key text NOT NULL,
    how text NOT NULL, -- watched, class, implicit
    by text NOT NULL, -- the class that is watched, or the association
    forwards integer NOT NULL
);

CREATE INDEX tidings_watches_by_key ON tidings_watches (key);

CREATE INDEX tidings_watches_by_class ON tidings_watches (class, key);

CREATE INDEX tidings_changes_by_object ON tidings_changes (family, key);

CREATE INDEX tidings_steps_by_change ON tidings_steps (change);

CREATE INDEX tidings_hits_by_change ON tidings_hits (change);

CREATE INDEX tidings_attends_by_course_id ON "attends" ("course_id");

CREATE FUNCTION tidings_student_key(key text) RETURNS "student"."id"%TYPE LANGUAGE plpgsql IMMUTABLE STRICT AS $tidings$ BEGIN RETURN key; END $tidings$;

CREATE FUNCTION tidings_course_key(key text) RETURNS "course"."id"%TYPE LANGUAGE plpgsql IMMUTABLE STRICT AS $tidings$ BEGIN RETURN key; END $tidings$;

CREATE FUNCTION tidings_changes_told() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $tidings$
BEGIN
    -- What counts as changed with it, by which steps, and who is told.
    -- Changed are the object itself and all that is reached along propagating associations.
    INSERT INTO tidings_reached (change, family, key)
    SELECT NEW.id, family, key FROM (
        SELECT NEW.family AS family, NEW.key AS key
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
    SELECT NEW.id, 'Student', l."student_id"::text, r.family, r.key, 'implicit', 'attends', 0
    FROM tidings_reached AS r CROSS JOIN "attends" AS l
    WHERE r.change = NEW.id AND r.family = 'Course' AND l."course_id" = CASE WHEN r.family = 'Course' THEN tidings_course_key(r.key) END AND l."student_id" IS NOT NULL;
    RETURN NEW;
END
$tidings$;

CREATE TRIGGER tidings_changes_told AFTER INSERT ON tidings_changes FOR EACH ROW
EXECUTE FUNCTION tidings_changes_told();
COMMENT ON TRIGGER tidings_changes_told ON "tidings_changes" IS 'Tidings 06d041fc2e464d07';

CREATE FUNCTION tidings_changes_forgotten() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $tidings$
BEGIN
    -- With a change goes all that followed from it.
    DELETE FROM tidings_reached WHERE change = OLD.id;
    DELETE FROM tidings_steps WHERE change = OLD.id;
    DELETE FROM tidings_hits WHERE change = OLD.id;
    RETURN NEW;
END
$tidings$;

CREATE TRIGGER tidings_changes_forgotten AFTER DELETE ON tidings_changes FOR EACH ROW
EXECUTE FUNCTION tidings_changes_forgotten();
COMMENT ON TRIGGER tidings_changes_forgotten ON "tidings_changes" IS 'Tidings ed753d99b40ee6c0';

CREATE FUNCTION tidings_watches_checked() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $tidings$
BEGIN
    -- Only classes of the model can be watched or told.
    IF NEW.class NOT IN ('Student', 'Course') THEN
        RAISE EXCEPTION USING MESSAGE = 'tidings_watches.class: the model has Student, Course', ERRCODE = 'check_violation';
    END IF;
    IF NEW.subscriber_class NOT IN ('Student') THEN
        RAISE EXCEPTION USING MESSAGE = 'tidings_watches.subscriber_class: subscribers are Student', ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END
$tidings$;

CREATE TRIGGER tidings_watches_checked BEFORE INSERT ON tidings_watches FOR EACH ROW
EXECUTE FUNCTION tidings_watches_checked();
COMMENT ON TRIGGER tidings_watches_checked ON "tidings_watches" IS 'Tidings b1863a0779525500';

CREATE FUNCTION tidings_student_inserted() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $tidings$
BEGIN
    -- A row of student is a new Student.
    INSERT INTO tidings_changes (kind, class, family, key, after)
    SELECT 'insert', 'Student', 'Student', NEW."id"::text, (SELECT jsonb_object_agg(name, value) FROM (
        SELECT 'name' AS name, to_jsonb(NEW."name") AS value
    ) AS row_values);
    RETURN NEW;
END
$tidings$;

CREATE TRIGGER tidings_student_inserted AFTER INSERT ON "student" FOR EACH ROW
EXECUTE FUNCTION tidings_student_inserted();
COMMENT ON TRIGGER tidings_student_inserted ON "student" IS 'Tidings 862dfa47f41cd6ac';

CREATE FUNCTION tidings_student_updated() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $tidings$
BEGIN
    -- A Student is another only if a value is: an update to the same value is none.
    INSERT INTO tidings_changes (kind, class, family, key, attributes, before, after)
    SELECT 'update', 'Student', 'Student', NEW."id"::text, jsonb_agg(name),
        jsonb_object_agg(name, was), jsonb_object_agg(name, became)
    FROM (
        SELECT 'name' AS name, to_jsonb(OLD."name") AS was, to_jsonb(NEW."name") AS became WHERE OLD."name"::text IS DISTINCT FROM NEW."name"::text
    ) AS changed;
    RETURN NEW;
END
$tidings$;

CREATE TRIGGER tidings_student_updated AFTER UPDATE OF "name" ON "student" FOR EACH ROW
WHEN (OLD."name"::text IS DISTINCT FROM NEW."name"::text)
EXECUTE FUNCTION tidings_student_updated();
COMMENT ON TRIGGER tidings_student_updated ON "student" IS 'Tidings 801036accfcd6eb5';

CREATE FUNCTION tidings_student_deleted() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $tidings$
BEGIN
    -- Before a Student goes, while its links are still there.
    INSERT INTO tidings_changes (kind, class, family, key, before)
    SELECT 'delete', 'Student', 'Student', OLD."id"::text, (SELECT jsonb_object_agg(name, value) FROM (
        SELECT 'name' AS name, to_jsonb(OLD."name") AS value
    ) AS row_values);
    RETURN OLD;
END
$tidings$;

CREATE TRIGGER tidings_student_deleted BEFORE DELETE ON "student" FOR EACH ROW
EXECUTE FUNCTION tidings_student_deleted();
COMMENT ON TRIGGER tidings_student_deleted ON "student" IS 'Tidings b70b322487f52314';

CREATE FUNCTION tidings_course_inserted() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $tidings$
BEGIN
    -- A row of course is a new Course.
    INSERT INTO tidings_changes (kind, class, family, key, after)
    SELECT 'insert', 'Course', 'Course', NEW."id"::text, (SELECT jsonb_object_agg(name, value) FROM (
        SELECT 'title' AS name, to_jsonb(NEW."title") AS value
    ) AS row_values);
    RETURN NEW;
END
$tidings$;

CREATE TRIGGER tidings_course_inserted AFTER INSERT ON "course" FOR EACH ROW
EXECUTE FUNCTION tidings_course_inserted();
COMMENT ON TRIGGER tidings_course_inserted ON "course" IS 'Tidings 7d8f722f10630e37';

CREATE FUNCTION tidings_course_updated() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $tidings$
BEGIN
    -- A Course is another only if a value is: an update to the same value is none.
    INSERT INTO tidings_changes (kind, class, family, key, attributes, before, after)
    SELECT 'update', 'Course', 'Course', NEW."id"::text, jsonb_agg(name),
        jsonb_object_agg(name, was), jsonb_object_agg(name, became)
    FROM (
        SELECT 'title' AS name, to_jsonb(OLD."title") AS was, to_jsonb(NEW."title") AS became WHERE OLD."title"::text IS DISTINCT FROM NEW."title"::text
    ) AS changed;
    RETURN NEW;
END
$tidings$;

CREATE TRIGGER tidings_course_updated AFTER UPDATE OF "title" ON "course" FOR EACH ROW
WHEN (OLD."title"::text IS DISTINCT FROM NEW."title"::text)
EXECUTE FUNCTION tidings_course_updated();
COMMENT ON TRIGGER tidings_course_updated ON "course" IS 'Tidings 5418f60eb205ab02';

CREATE FUNCTION tidings_course_deleted() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $tidings$
BEGIN
    -- Before a Course goes, while its links are still there.
    INSERT INTO tidings_changes (kind, class, family, key, before)
    SELECT 'delete', 'Course', 'Course', OLD."id"::text, (SELECT jsonb_object_agg(name, value) FROM (
        SELECT 'title' AS name, to_jsonb(OLD."title") AS value
    ) AS row_values);
    RETURN OLD;
END
$tidings$;

CREATE TRIGGER tidings_course_deleted BEFORE DELETE ON "course" FOR EACH ROW
EXECUTE FUNCTION tidings_course_deleted();
COMMENT ON TRIGGER tidings_course_deleted ON "course" IS 'Tidings 20f33d77282141e6';

COMMIT;
