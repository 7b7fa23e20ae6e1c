/* The life of a run: launch, coordination, stop, closing of its step, end, launch again.

   One atomic sequence below is one round trip of the code, except where a statement's sub-selects
   see the snapshot of its start while its own row is read again once it is locked (READ COMMITTED):
   these are two sequences, "looks" and "acts". SQLite does both at once, which is one of the orders
   that are tried.

   Step                 Mirrors
   take                 cluster/coordinator.py _takeable, _take; store/runs.py COORDINATE
   read                 engine/advance.py tick: store/progress.py steps_of(), then of_step()
   move                 model/flow.py next_move
   plan                 engine/advance.py _plan; store/runs.py plan_step()
   shut                 store/runs.py SHUT_STEP
   close                engine/advance.py _close; store/runs.py CLOSE_STEP with _RUN_END
   end, fail            engine/advance.py _end, fail; store/runs.py END_RUN
   claim, cut           store/chunks.py CLAIM, CUT: the step held by a shared lock
   finish, fail, return store/chunks.py _FINISH, RELEASE; who may do it: chunk.pml
   split                store/chunks.py SPLIT: the step held by an exclusive lock
   stop                 store/requests.py ask_to_stop
   launch               store/runs.py RELAUNCH; store/tables.py ux_batch_run_live

   One instance with one step of one partition, which is cut into one chunk. A coordinator that loses
   its lease early (EARLY) is one that was frozen, or met a clock that jumped.

   Broken on purpose, by -D:
   NO_TOKEN             closing and ending ask for a live run only, not for the coordination token
   NO_VERSION           closing does not ask whether the step's version is the one that was read
   CLOSE_WITH_RUNNING   closing heeds waiting chunks only (NO_RUNNING_GUARD and NO_RUNNING_CHECK)
   NO_RUNNING_GUARD     ... the statement alone does not ask for RUNNING chunks
   NO_RUNNING_CHECK     ... the decision alone does not ask for RUNNING chunks
   NO_SHUT              a stop closes the step without shutting it first
   NO_UNIQUE_RUN        two runs of an instance may be live
   NO_TAKEOVER          nobody takes the run of a coordinator that died
   PLAN_WITHOUT_TOKEN   the plan may be stored by one who has lost the run */

#ifndef RUNS
#define RUNS 2         /* runs of the instance, the first one included: 1 or 2 */
#endif
#ifndef CRASHES
#define CRASHES 1      /* coordinators that die (another one starts) */
#endif
#ifndef EARLY
#define EARLY 1        /* takeovers of a coordinator that lives */
#endif
#ifndef BACK
#define BACK 1         /* chunks given back or taken over */
#endif
#ifndef SPLITS
#define SPLITS 1
#endif
#ifndef BROKEN
#define BROKEN 1       /* chunks that end FAILED */
#endif
#ifndef PLAN_FAILS
#define PLAN_FAILS 1
#endif
#ifndef STOPS
#define STOPS 1
#endif

#define OPEN 0         /* an instance; COMPLETED is the other one of its states here */
#define NONE 0         /* a chunk that is not there */
#define PENDING 1
#define RUNNING 2
#define COMPLETED 3
#define FAILED 4
#define STOPPED 5
#define SPLIT 6

typedef Run { bit live; bit ended; bit stop; byte token; bit orphan /* its coordinator died */ };
typedef Step { byte state; bit accepting; bit planned; byte version };

Run run_[RUNS + 1];    /* by number, from 1 */
Step step;
byte instance = OPEN;
byte chunks[3];        /* a cut chunk, and the two halves that a SPLIT makes of it */
byte uncut;
byte launched, tokens;
byte crashes, early, back, splits, broken, plan_fails, stops;

#define COUNT(s) ((chunks[0] == s) + (chunks[1] == s) + (chunks[2] == s))
#define IS_LIVE (run_[1].live || run_[RUNS].live)
#define ALL_ENDED (launched > 0 && !IS_LIVE && (instance == COMPLETED || launched == RUNS))

#ifdef NO_TOKEN
#define HOLDS(r, t) run_[r].live
#else
#define HOLDS(r, t) (run_[r].live && run_[r].token == t)
#endif
#ifdef NO_VERSION
#define SAME_VERSION true
#else
#define SAME_VERSION (step.version == version)
#endif
#if defined(CLOSE_WITH_RUNNING) || defined(NO_RUNNING_GUARD)
#define NONE_RUNS true
#else
#define NONE_RUNS (COUNT(RUNNING) == 0)
#endif
#if defined(CLOSE_WITH_RUNNING) || defined(NO_RUNNING_CHECK)
#define SAW_NONE_RUN true
#else
#define SAW_NONE_RUN (running == 0)
#endif
#ifdef PLAN_WITHOUT_TOKEN
#define MAY_PLAN true
#else
#define MAY_PLAN HOLDS(r, token)
#endif

inline end_run(r) {
    assert(run_[r].live && !run_[r].ended);                /* no run ends twice */
    assert(COUNT(RUNNING) == 0);                           /* nor while a chunk is worked on */
    run_[r].live = 0; run_[r].ended = 1; run_[r].token = 0; run_[r].orphan = 0; run_[r].stop = 0
}

/* One Coordinator: each round is one tick. Its memory is what it has read, which may be old. */
proctype coordinator() {
    byte r, token, state, version, running, failed, to;
    bit accepting, planned, waiting, stop, seen;
tick:
    state = 0; version = 0; running = 0; failed = 0; to = 0;
    accepting = 0; planned = 0; waiting = 0; stop = 0; seen = 0;
    do
    :: atomic { ALL_ENDED -> goto done }
    :: atomic { token && crashes < CRASHES -> crashes++;
        if :: run_[r].token == token -> run_[r].orphan = 1 :: else fi; r = 0; token = 0 }
    :: atomic { token && run_[r].token != token -> r = 0; token = 0 }         /* it was taken */
    :: atomic { !token && IS_LIVE ->                                          /* take */
        if :: run_[1].live -> r = 1 :: run_[RUNS].live -> r = RUNS fi;
        if
#ifndef NO_TAKEOVER
        :: run_[r].orphan
#endif
        :: !run_[r].token
        :: run_[r].token && !run_[r].orphan && early < EARLY -> early++
        :: else -> r = 0; goto tick
        fi;
        tokens++; token = tokens; run_[r].token = token; run_[r].orphan = 0 }
    :: atomic { token && run_[r].token == token -> stop = run_[r].stop; break }
    od;
    atomic { state = step.state; version = step.version; accepting = step.accepting;
        planned = step.planned };                                             /* read the step */
    atomic {                                                                  /* read its chunks */
        if
        :: planned ->
            waiting = uncut || COUNT(PENDING); running = COUNT(RUNNING); failed = COUNT(FAILED)
        :: else
        fi;
        if                                                                    /* move */
        :: state == COMPLETED || state == FAILED || state == STOPPED -> to = state; goto end
        :: state < COMPLETED && !planned && stop -> to = STOPPED; goto end
        :: state < COMPLETED && !planned && !stop -> goto plan
        :: state < COMPLETED && planned && !waiting && SAW_NONE_RUN ->
            if :: failed -> to = FAILED :: else -> to = COMPLETED fi; goto close
#ifndef NO_SHUT
        :: state < COMPLETED && planned && (waiting || !SAW_NONE_RUN) && stop && accepting ->
            goto shut
        :: state < COMPLETED && planned && waiting && stop && !accepting && SAW_NONE_RUN ->
#else
        :: state < COMPLETED && planned && waiting && stop && SAW_NONE_RUN ->
#endif
            to = STOPPED; goto close
        :: else -> goto tick
        fi };
plan:
    atomic {
        if
        :: plan_fails < PLAN_FAILS -> plan_fails++; to = FAILED; goto end
        :: MAY_PLAN && !step.planned && step.version == version && step.state <= RUNNING ->
            step.planned = 1; step.accepting = 1; step.state = RUNNING; step.version++; uncut = 1
        :: else
        fi;
        goto tick };
shut:
    atomic {
        if
        :: step.state == RUNNING && step.accepting -> step.accepting = 0; step.version++
        :: else
        fi;
        goto tick };
close:
    atomic { seen = NONE_RUNS && HOLDS(r, token) };                           /* looks */
    atomic {                                                                  /* acts */
        if
        :: seen && step.state == RUNNING && SAME_VERSION ->
            assert(COUNT(RUNNING) == 0);        /* never closed while a chunk is worked on */
            assert(to != COMPLETED || (!uncut && !COUNT(PENDING) && !COUNT(FAILED)));
            step.state = to; step.accepting = 0; step.version++;
            if :: HOLDS(r, token) -> end_run(r) :: else fi;
            if :: to == COMPLETED -> instance = COMPLETED :: else fi
        :: else
        fi;
        goto tick };
end:
    atomic {
        if
        :: HOLDS(r, token) ->
            end_run(r);
            if :: to == COMPLETED -> instance = COMPLETED :: else fi
        :: else
        fi;
        goto tick };
done: skip
}

/* All workers and sweeps: each branch is guarded as its statement is, so that who does it matters
   not. That only the holder of a claim can end it is chunk.pml's matter. */
proctype workers() {
    byte i;
    do
    :: atomic { ALL_ENDED -> break }
    :: atomic { step.state == RUNNING && step.accepting && uncut ->           /* cut */
        uncut = 0; chunks[0] = RUNNING }
    :: atomic { COUNT(PENDING) && step.state == RUNNING && step.accepting ->  /* claim */
        if
        :: chunks[0] == PENDING -> chunks[0] = RUNNING
        :: chunks[1] == PENDING -> chunks[1] = RUNNING
        :: chunks[1] != PENDING && chunks[2] == PENDING -> chunks[2] = RUNNING
        fi }
    :: atomic { COUNT(RUNNING) ->
        if
        :: chunks[0] == RUNNING -> i = 0
        :: chunks[1] == RUNNING -> i = 1
        :: chunks[2] == RUNNING -> i = 2
        fi;
        if
        :: chunks[i] = COMPLETED                                              /* finish */
        :: broken < BROKEN -> broken++; chunks[i] = FAILED                    /* fail */
        :: back < BACK -> back++; chunks[i] = PENDING                         /* return */
        :: i == 0 && splits < SPLITS && step.state == RUNNING ->              /* split */
            splits++; step.version++;
            chunks[0] = SPLIT; chunks[1] = PENDING; chunks[2] = PENDING
        fi;
        i = 0 }
    od
}

/* Operators: they ask for a stop, at any time. */
proctype operator() {
    do
    :: atomic { ALL_ENDED -> break }
    :: atomic { run_[1].live && stops < STOPS -> stops++; run_[1].stop = 1 }
    :: atomic { run_[RUNS].live && stops < STOPS -> stops++; run_[RUNS].stop = 1 }
    od
}

/* Launch again, by two at once. A run that is live is not launched, it continues. */
proctype launcher() {
    bit seen, ended;
    do
    :: atomic { instance == COMPLETED || launched == RUNS -> break }
    :: atomic { launched < RUNS && instance == OPEN && !IS_LIVE ->            /* looks */
        ended = (step.state == FAILED || step.state == STOPPED); seen = 1 };
        atomic {                                                              /* acts */
            if
#ifdef NO_UNIQUE_RUN
            :: seen && instance == OPEN && launched < RUNS + 1 ->
#else
            :: seen && instance == OPEN && !IS_LIVE && launched < RUNS ->
#endif
                if :: launched < RUNS -> launched++ :: else fi;
                assert(!IS_LIVE);                          /* one live run an instance */
                run_[launched].live = 1;
                if
                :: ended && (step.state == FAILED || step.state == STOPPED) ->
                    if :: chunks[0] == FAILED -> chunks[0] = PENDING :: else fi;
                    if :: chunks[1] == FAILED -> chunks[1] = PENDING :: else fi;
                    if :: chunks[2] == FAILED -> chunks[2] = PENDING :: else fi;
                    step.state = RUNNING; step.accepting = step.planned; step.version++
                :: else
                fi
            :: else
            fi;
            seen = 0; ended = 0 }
    od
}

init {
    atomic {
        step.state = PENDING;
        launched = 1; run_[1].live = 1;
        run coordinator(); run coordinator();
        run workers(); run operator();
        run launcher(); run launcher()
    }
}

/* With bounded faults every run ends. */
ltl ends { <> ALL_ENDED }
