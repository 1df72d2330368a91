CREATE TABLE datasets (name TEXT PRIMARY KEY, epsilon REAL NOT NULL, delta REAL NOT NULL);
INSERT INTO "datasets" VALUES('posts',8.0,1.0e-05);
INSERT INTO "datasets" VALUES('weekly',3.0,1.0e-06);
INSERT INTO "datasets" VALUES('small',3.0,1.0e-06);
CREATE TABLE entries (
    dataset TEXT NOT NULL REFERENCES datasets (name), number INTEGER NOT NULL, mechanism TEXT NOT NULL,
    label TEXT NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL, charged TEXT NOT NULL, state TEXT NOT NULL,
    attempt INTEGER NOT NULL, release TEXT NOT NULL, kept TEXT NOT NULL, times INTEGER NOT NULL,
    reserve INTEGER NOT NULL, guarantee TEXT NOT NULL, PRIMARY KEY (dataset, number)
);
INSERT INTO "entries" VALUES('posts',1,'items','',3.0,1.0e-07,'2026-11-27T23:29:50+00:00','finished',1,'c3fb091dc1134f5f9c069d06055e7246','',1,0,'{"epsilon": 3.0, "delta": 1e-07, "neighbours": "one user added or removed", "private": true, "spend": {"novel": 3.999996004001469e-08, "mu": 0.582732629184559, "two_sided": true}}');
INSERT INTO "entries" VALUES('posts',2,'items','',1.0,1.0e-07,'2026-11-27T23:29:58+00:00','finished',1,'f937e825b38c47b39c53aa73709f1030','',1,0,'{"epsilon": 1.0, "delta": 1e-07, "neighbours": "one user added or removed", "private": true, "spend": {"novel": 3.999397749159445e-08, "mu": 0.20943414092883136, "two_sided": true}}');
INSERT INTO "entries" VALUES('posts',3,'n-grams','',2.0,1.0e-07,'2026-11-27T23:30:01+00:00','finished',1,'00b8769f73754c97a497e7c68d66c26a','',1,0,'{"epsilon": 2.0, "delta": 1e-07, "neighbours": "one user added or removed", "private": true, "spend": {"novel": 1.499998501501131e-08, "mu": 0.40586070144735326, "two_sided": true}}');
INSERT INTO "entries" VALUES('posts',4,'counts','',1.0,1.0e-07,'2026-11-27T23:30:05+00:00','finished',1,'00b8769f73754c97a497e7c68d66c26a','',1,0,'{"epsilon": 1.0, "delta": 1e-07, "neighbours": "one user added or removed", "private": true, "spend": {"novel": 7.873768039704441e-22, "mu": 0.21373627189652933}}');
INSERT INTO "entries" VALUES('posts',5,'top','',0.5,1.0e-08,'2026-11-27T23:30:06+00:00','finished',1,'00b8769f73754c97a497e7c68d66c26a','',1,0,'{"epsilon": 0.5, "delta": 1e-08, "neighbours": "one user added or removed", "private": true, "spend": {"novel": 1.0166104908121147e-20, "mu": 0.14011853822852044}}');
INSERT INTO "entries" VALUES('weekly',1,'items','weeks',0.5,1.0e-08,'2026-11-27T23:30:11+00:00','reserved',1,'','',40,0,'{"epsilon": 0.5, "delta": 1e-08, "neighbours": "one user added or removed", "private": true, "spend": {"novel": 3.999260410078445e-09, "mu": 0.09952329035643247, "two_sided": true}}');
INSERT INTO "entries" VALUES('weekly',2,'items','',0.5,1.0e-08,'2026-11-27T23:30:11+00:00','finished',1,'7d226ac999294c16a8dcf04799196ec4','',1,1,'{"epsilon": 0.5, "delta": 1e-08, "neighbours": "one user added or removed", "private": true, "spend": {"novel": 3.999260410078445e-09, "mu": 0.09952329035643247, "two_sided": true}}');
INSERT INTO "entries" VALUES('small',1,'x','',0.25,1.0e-09,'2026-11-27T23:30:12+00:00','charged',1,'','',1,0,'{"epsilon": 0.25, "delta": 1e-09, "neighbours": "one user added or removed", "private": true}');
INSERT INTO "entries" VALUES('small',2,'x','',0.5,1.0e-08,'2026-11-27T23:30:12+00:00','charged',1,'','',1,0,'{"epsilon": 0.5, "delta": 1e-08, "neighbours": "one user added or removed", "private": true, "spend": {"novel": 3.999260410078445e-09, "mu": 0.09952329035643247, "two_sided": true}}');
INSERT INTO "entries" VALUES('small',3,'x','',0.5,1.0e-08,'2026-11-27T23:30:12+00:00','charged',1,'','',1,0,'{"epsilon": 0.5, "delta": 1e-08, "neighbours": "one user added or removed", "private": true, "spend": {"novel": 3.999260410078445e-09, "mu": 0.09952329035643247, "two_sided": true}}');
INSERT INTO "entries" VALUES('small',4,'x','',0.25,1.0e-09,'2026-11-27T23:30:12+00:00','charged',1,'','',1,0,'{"epsilon": 0.25, "delta": 1e-09, "neighbours": "one user added or removed", "private": true}');
INSERT INTO "entries" VALUES('small',5,'x','',0.5,1.0e-08,'2026-11-27T23:30:17+00:00','charged',1,'','',1,0,'{"epsilon": 0.5, "delta": 1e-08, "neighbours": "one user added or removed", "private": true, "spend": {"novel": 3.999260410078445e-09, "mu": 0.09952329035643247, "two_sided": true}}');
INSERT INTO "entries" VALUES('small',6,'x','',0.5,1.0e-08,'2026-11-27T23:30:17+00:00','charged',1,'','',1,0,'{"epsilon": 0.5, "delta": 1e-08, "neighbours": "one user added or removed", "private": true, "spend": {"novel": 3.999260410078445e-09, "mu": 0.09952329035643247, "two_sided": true}}');
INSERT INTO "entries" VALUES('small',7,'x','',0.25,1.0e-09,'2026-11-27T23:30:17+00:00','charged',1,'','',1,0,'{"epsilon": 0.25, "delta": 1e-09, "neighbours": "one user added or removed", "private": true}');
INSERT INTO "entries" VALUES('small',8,'x','',0.5,1.0e-08,'2026-11-27T23:30:17+00:00','charged',1,'','',1,0,'{"epsilon": 0.5, "delta": 1e-08, "neighbours": "one user added or removed", "private": true, "spend": {"novel": 3.999260410078445e-09, "mu": 0.09952329035643247, "two_sided": true}}');
INSERT INTO "entries" VALUES('small',9,'x','',0.5,1.0e-08,'2026-11-27T23:30:17+00:00','charged',1,'','',1,0,'{"epsilon": 0.5, "delta": 1e-08, "neighbours": "one user added or removed", "private": true, "spend": {"novel": 3.999260410078445e-09, "mu": 0.09952329035643247, "two_sided": true}}');
INSERT INTO "entries" VALUES('small',10,'x','',0.25,1.0e-09,'2026-11-27T23:30:17+00:00','charged',1,'','',1,0,'{"epsilon": 0.25, "delta": 1e-09, "neighbours": "one user added or removed", "private": true}');
INSERT INTO "entries" VALUES('small',11,'x','',0.5,1.0e-08,'2026-11-27T23:30:17+00:00','charged',1,'','',1,0,'{"epsilon": 0.5, "delta": 1e-08, "neighbours": "one user added or removed", "private": true, "spend": {"novel": 3.999260410078445e-09, "mu": 0.09952329035643247, "two_sided": true}}');
INSERT INTO "entries" VALUES('small',12,'x','',0.5,1.0e-08,'2026-11-27T23:30:17+00:00','charged',1,'','',1,0,'{"epsilon": 0.5, "delta": 1e-08, "neighbours": "one user added or removed", "private": true, "spend": {"novel": 3.999260410078445e-09, "mu": 0.09952329035643247, "two_sided": true}}');
CREATE TABLE seal (checksum TEXT NOT NULL);
INSERT INTO "seal" VALUES('sha256:3ec01c56a2ef28da7280d8a9abcf37794d0f631050500636a43b8a87f53c78d6');
PRAGMA application_id = 1987604588;
PRAGMA user_version = 3;
