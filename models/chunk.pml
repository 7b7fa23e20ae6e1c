/* The life of a chunk: claim, work transaction, doubtful commit, takeover.

   One atomic sequence below is one round trip of the code. Between any two of them a worker may be
   frozen (it is not scheduled), crash, or lose its session; that is all a clock that jumps can do.

   Step                  Mirrors
   claim                 store/chunks.py CLAIM (one control transaction)
   witness               engine/chunk.py commit_chunk: BEGIN, store/chunks.py witness()
   first, second effect  engine/chunk.py write_effects, item_errors.write: seen at COMMIT only
   finish                store/chunks.py _FINISH, engine/chunk.py finish_chunk
   commit                engine/chunk.py work.commit
   doubt                 engine/attempt.py _failed, _did_commit; store/chunks.py did_commit()
   give back             engine/attempt.py _give_up; store/chunks.py RELEASE
   end the old session   store/dialects end_session, called by cluster/takeover.py
   take                  cluster/takeover.py end_lost; store/chunks.py RELEASE
   unique keys           store/tables.py ux_batch_attempt_fence, ux_batch_attempt_committed

   The table of effects has no unique key here: what is shown does not lean on one.
   The lease is no variable: a taker that believes it has run out may come at any time (EARLY).

   Broken on purpose, by -D:
   NO_WITNESS            the finish does not ask whether the witness is still there
   NO_FENCE              the finish asks neither fence nor token
   NO_STATE              the finish does not ask whether the chunk is RUNNING
   FENCE_OUTSIDE_COMMIT  fence and token are asked before BEGIN, in a statement of their own
   DOUBT_WITHOUT_REREAD  a commit without answer counts as not committed
   SAME_FENCE            a claim does not raise the fence
   NO_END                a taker does not end the old session
   NO_UNIQUE             the attempt rows have no unique keys (broken only beside another one)
   EFFECTS_ONLY          nothing is broken: of what a commit must keep, only the effects are asked */

#ifndef W
#define W 2            /* workers */
#endif
#ifndef C
#define C 1            /* chunks */
#endif
#ifndef SWEEPS
#define SWEEPS 1       /* supervisors that look for lost chunks */
#endif
#ifndef CRASHES
#define CRASHES 1      /* workers that die; fewer than W */
#endif
#ifndef EARLY
#define EARLY 1        /* takeovers of an owner that lives: the clock jumped, or it was frozen */
#endif
#ifndef SILENT
#define SILENT 1       /* work transactions that the database rolls back under swallowed errors */
#endif
#ifndef LOST
#define LOST 1         /* commits whose answer is lost, and sessions that break */
#endif
#ifndef RETRIES
#define RETRIES 1      /* attempts that try again instead of giving back */
#endif

#define PENDING 0
#define RUNNING 1
#define COMPLETED 2

typedef Chunk {                      /* a row of batch_chunk, as committed */
    byte state; byte fence;
    byte token;                      /* 0: none. New with each claim, so the fence's number serves */
    byte owner;
    byte locked_by;                  /* 1 + the worker whose open transaction has changed the row */
    byte ended;                      /* one bit a fence that has its row in batch_attempt */
    byte completed;                  /* how many of these rows say COMPLETED */
    byte winner;                     /* whose effects are there: the fence */
    byte first; byte second          /* how often the chunk's two effects are there */
};
typedef Work {                       /* a worker's session, as the server has it */
    bit open; bit witness; bit first; bit second; bit finish;
    bit sent;                        /* COMMIT is under way, and nobody waits for its answer */
    byte chunk; byte fence
};

Chunk chunk[C];
Work work[W];
bit down[W];
byte crashes, early, silent, lost, retries;

#if C == 1
#define ALL_COMPLETED (chunk[0].state == COMPLETED)
#else
#define ALL_COMPLETED (chunk[0].state == COMPLETED && chunk[1].state == COMPLETED)
#endif
#if W == 2
#define SOME(test) (test(0) || test(1))
#else
#define SOME(test) (test(0) || test(1) || test(2))
#endif

/* Two attempt rows with one key: the second waits for the first one's end, and then fails. One key
   is (chunk, COMPLETED), which two witnesses share; the other is (chunk, fence). */
#define HAS_WITNESS(w) (work[w].witness && work[w].chunk == c)
#define HAS_SAME_FENCE(w) (HAS_WITNESS(w) && work[w].fence == f)
#ifdef NO_UNIQUE
#define WITNESS_WAITS false
#define RELEASE_WAITS (IS_HELD && chunk[c].locked_by)
#define IS_DOUBLE false
#else
#define WITNESS_WAITS SOME(HAS_WITNESS)
#define RELEASE_WAITS (IS_HELD && (chunk[c].locked_by || SOME(HAS_SAME_FENCE)))
#define IS_DOUBLE (chunk[c].completed > 0 || (chunk[c].ended & (1 << f)))
#endif
#define IS_HELD (chunk[c].state == RUNNING && chunk[c].fence == f && chunk[c].token == f)

#ifdef NO_STATE
#define STATE_HOLDS true
#else
#define STATE_HOLDS (chunk[c].state == RUNNING)
#endif
#if defined(NO_FENCE) || defined(FENCE_OUTSIDE_COMMIT)
#define CLAIM_HOLDS true
#else
#define CLAIM_HOLDS (chunk[c].fence == f && chunk[c].token == f)
#endif
#ifdef NO_WITNESS
#define WITNESS_HOLDS true
#else
#define WITNESS_HOLDS work[me].witness
#endif

#ifdef EFFECTS_ONLY
#define EXPECT(truth) skip
#else
#define EXPECT(truth) assert(truth)
#endif

inline roll_back(w) {
    if
    :: work[w].open && chunk[work[w].chunk].locked_by == (w) + 1 ->
        chunk[work[w].chunk].locked_by = 0
    :: else
    fi;
    work[w].open = 0; work[w].witness = 0; work[w].first = 0; work[w].second = 0;
    work[w].finish = 0; work[w].sent = 0; work[w].chunk = 0; work[w].fence = 0
}

/* The server makes a work transaction true; here everything that must never happen would show. */
inline commit(w, c) {
    assert(work[w].finish);
    chunk[c].first = chunk[c].first + work[w].first;
    chunk[c].second = chunk[c].second + work[w].second;
    assert(chunk[c].first == 1 && chunk[c].second == 1);     /* each effect is there, and once */
    EXPECT(work[w].fence == chunk[c].fence);         /* only the attempt that holds the claim */
    EXPECT(!work[w].witness || !(chunk[c].ended & (1 << work[w].fence)));    /* an ended one never */
    EXPECT(chunk[c].completed + work[w].witness <= 1);       /* one committed attempt, not two */
    if
    :: work[w].witness ->
        chunk[c].ended = chunk[c].ended | (1 << work[w].fence);
        chunk[c].completed++
    :: else
    fi;
    chunk[c].state = COMPLETED; chunk[c].winner = work[w].fence;
    roll_back(w)
}

/* RELEASE: the guarded end of an attempt without effects, and its history row. */
inline release() {
    if
    :: IS_HELD ->
        assert(chunk[c].first == 0 && chunk[c].second == 0); /* no effect without completion */
        chunk[c].state = PENDING; chunk[c].token = 0; chunk[c].owner = 0;
        chunk[c].ended = chunk[c].ended | (1 << f)
    :: else                                                  /* it had ended meanwhile */
    fi
}

inline pick() {
    if
    :: c = 0
#if C > 1
    :: c = 1
#endif
    fi
}

proctype worker(byte me) {
    byte c, f;
idle:
    c = 0; f = 0;
    do
    :: atomic { ALL_COMPLETED -> goto done }
    :: atomic { !down[me] && !ALL_COMPLETED && !work[me].open; pick();        /* claim */
        if
        :: chunk[c].state == PENDING && chunk[c].locked_by == 0 ->
            chunk[c].state = RUNNING; chunk[c].owner = me;
#ifdef SAME_FENCE
            if :: chunk[c].fence == 0 -> chunk[c].fence = 1 :: else fi;
#else
            chunk[c].fence++;
#endif
            chunk[c].token = chunk[c].fence; f = chunk[c].fence;
            EXPECT(!(chunk[c].ended & (1 << f)));            /* fences rise: none is used twice */
            goto attempt
        :: else -> c = 0
        fi }
    od;
attempt:                                          /* reads, processes, calls: changes nothing here */
#ifdef FENCE_OUTSIDE_COMMIT
    atomic { !down[me] ->
        if
        :: IS_HELD
        :: else -> goto idle
        fi };
#endif
    atomic { !down[me] && !work[me].open && !WITNESS_WAITS ->                 /* witness */
        if
        :: IS_DOUBLE -> goto idle                                       /* LostClaim */
        :: else ->
            work[me].open = 1; work[me].witness = 1; work[me].chunk = c; work[me].fence = f
        fi };
    atomic { !down[me] ->
        if :: work[me].open -> work[me].first = 1 :: else -> goto doubt fi };
    atomic { !down[me] ->
        if :: work[me].open -> work[me].second = 1 :: else -> goto doubt fi };
    atomic { !down[me] && (!work[me].open || chunk[c].locked_by == 0) ->      /* finish */
        if
        :: !work[me].open -> goto doubt
        :: work[me].open && STATE_HOLDS && CLAIM_HOLDS && WITNESS_HOLDS ->
            work[me].finish = 1; chunk[c].locked_by = me + 1
        :: else ->
            if
            :: work[me].witness -> roll_back(me); goto idle                   /* LostClaim */
            :: else -> roll_back(me); goto attempt                            /* WitnessGone */
            fi
        fi };
    atomic { !down[me] ->                                                     /* commit */
        if
        :: !work[me].open -> goto doubt
        :: work[me].open -> commit(me, c); EXPECT(chunk[c].winner == f); goto idle
        :: work[me].open && lost < LOST -> lost++; work[me].sent = 1; goto doubt
        fi };
doubt:
#ifndef DOUBT_WITHOUT_REREAD
    atomic { !down[me] -> roll_back(me) };              /* ends its own old session, sees it gone */
    atomic { !down[me] && chunk[c].locked_by == 0 ->    /* reads the chunk's row under a lock */
        if
        :: chunk[c].state == COMPLETED && chunk[c].token == f ->
            EXPECT(chunk[c].winner == f); goto idle
        :: lost < LOST -> lost++; goto attempt          /* no answer: the next finish will tell */
        :: else
        fi };
#endif
    atomic { !down[me] ->
        EXPECT(chunk[c].winner != f && !work[me].sent); /* told "not committed": so it is, for good */
        if
        :: retries < RETRIES -> retries++; goto attempt
        :: else
        fi };
    atomic { !down[me] && !RELEASE_WAITS -> /* give back */
        release(); goto idle };
done: skip
}

/* A supervisor's sweep. It lives apart from the workers: a slot that hangs does not hold it up. */
proctype sweep() {
    byte c, f, w;
idle:
    c = 0; f = 0; w = 0;
    do
    :: atomic { ALL_COMPLETED -> goto done }
    :: atomic { !ALL_COMPLETED; pick();                                       /* look */
        if
        :: chunk[c].state == RUNNING && (down[chunk[c].owner] || early < EARLY) ->
            if :: down[chunk[c].owner] :: else -> early++ fi;
            f = chunk[c].fence;
            goto take
        :: else -> c = 0
        fi }
    od;
take:
#ifndef NO_END
    atomic {                                            /* end the old session, see it gone */
        do
        :: w < W ->
            if
            :: work[w].open && work[w].chunk == c && work[w].fence == f -> roll_back(w)
            :: else
            fi;
            w++
        :: else -> w = 0; break
        od };
#endif
    atomic {                                            /* take, under a lock timeout */
        if
        :: RELEASE_WAITS -> goto take                                         /* ends it again */
        :: else -> release(); goto idle
        fi };
done: skip
}

/* What happens to sessions and workers by themselves. */
proctype world() {
    byte w, c;
    do
    :: atomic { ALL_COMPLETED -> break }
    :: atomic { !ALL_COMPLETED;
        if
        :: w = 0
        :: w = 1
#if W > 2
        :: w = 2
#endif
        fi;
        if
        :: work[w].sent -> c = work[w].chunk; commit(w, c); c = 0    /* the COMMIT under way arrives */
        :: work[w].open && lost < LOST -> lost++; roll_back(w)   /* the session breaks */
        :: work[w].witness && !work[w].finish && silent < SILENT ->
            silent++;                     /* rolled back; the next statement opens a new one */
            work[w].witness = 0; work[w].first = 0; work[w].second = 0
        :: !down[w] && crashes < CRASHES -> crashes++; down[w] = 1
        :: down[w] && work[w].open && lost < LOST -> lost++; roll_back(w)
        :: else
        fi;
        w = 0 }
    od
}

init {
    atomic {
        run worker(0);
        run worker(1);
#if W > 2
        run worker(2);
#endif
        run sweep();
#if SWEEPS > 1
        run sweep();
#endif
        run world()
    }
}

/* With bounded faults every chunk ends. */
ltl ends { <> ALL_COMPLETED }
