(** The bound for novel items by backward induction (docs/privacy/adaptive.md, "Novel items"). *)
From Coq Require Import Reals Lra Psatz List.
Import ListNotations.
Open Scope R_scope.

(** One round, as an item meets it: thresholds of the score, what one unit of noise adds to it, mu, cap and probability. *)
Record round := { threshold : R; drop : R; part : R; mu : R; cap : R; chance : R }.

Definition sane (r : round) : Prop :=
  drop r <= threshold r /\ 0 <= part r /\ 0 <= mu r /\ 0 <= cap r /\ 0 <= chance r <= 1.

(** An item whose score becomes s counts 1 from the threshold on, 0 below the drop threshold, else the value v. *)
Definition decided (r : round) (s v : R) : R :=
  if Rle_dec (threshold r) s then 1 else if Rlt_dec s (drop r) then 0 else v.

Section Rounds.

(** The mean over the noise of a round: any functional that keeps 0, 1 and the order. *)
Variable mean : (R -> R) -> R.
Hypothesis mean_rises : forall f g, (forall x, f x <= g x) -> mean f <= mean g.
Hypothesis mean_0 : mean (fun _ => 0) = 0.
Hypothesis mean_1 : mean (fun _ => 1) = 1.

Definition after (r : round) (v : R -> R) (w s : R) : R :=
  mean (fun x => let s' := s + part r * (mu r * w + x) in decided r s' (v s')).

(** V_r(Z) = q G_r(a_r) + (1 - q) G_r(0). *)
Fixpoint V (rounds : list round) (s : R) : R :=
  match rounds with
  | [] => 0
  | r :: rest => chance r * after r (V rest) (cap r) s + (1 - chance r) * after r (V rest) 0 s
  end.

Definition proper (v : R -> R) : Prop := (forall s, 0 <= v s <= 1) /\ forall s s', s <= s' -> v s <= v s'.

Lemma decided_bounds r s v : 0 <= v <= 1 -> 0 <= decided r s v <= 1.
Proof. unfold decided. destruct (Rle_dec _ _); [lra|]. destruct (Rlt_dec _ _); lra. Qed.

Lemma decided_le r s v v' : v <= v' -> decided r s v <= decided r s v'.
Proof. unfold decided. destruct (Rle_dec _ _); [lra|]. destruct (Rlt_dec _ _); lra. Qed.

Lemma decided_rises r v s s' : sane r -> proper v -> s <= s' -> decided r s (v s) <= decided r s' (v s').
Proof.
  intros (DT & _) [B M] L. assert (X := B s). assert (Y := B s'). specialize (M _ _ L). unfold decided.
  destruct (Rle_dec (threshold r) s), (Rle_dec (threshold r) s'), (Rlt_dec s (drop r)), (Rlt_dec s' (drop r)); lra.
Qed.

Lemma after_rises r v w w' s s' : sane r -> proper v -> w <= w' -> s <= s' -> after r v w s <= after r v w' s'.
Proof.
  intros H P W L. apply mean_rises. intros x. apply decided_rises; auto. destruct H as (_ & C & M & _).
  assert (mu r * w <= mu r * w') by (apply Rmult_le_compat_l; assumption).
  assert (part r * (mu r * w + x) <= part r * (mu r * w' + x)) by (apply Rmult_le_compat_l; lra). lra.
Qed.

Lemma after_bounds r v w s : proper v -> 0 <= after r v w s <= 1.
Proof.
  intros [B _]. unfold after. split.
  - apply Rle_trans with (mean (fun _ => 0)); [rewrite mean_0; lra|]. apply mean_rises. intros x. apply decided_bounds, B.
  - apply Rle_trans with (mean (fun _ => 1)); [|rewrite mean_1; lra]. apply mean_rises. intros x. apply decided_bounds, B.
Qed.

(** "V and so G rise with score and weight." *)
Theorem V_proper rounds : Forall sane rounds -> proper (V rounds).
Proof.
  induction 1 as [|r rest H _ IH]; simpl; [split; intros; try split; lra|].
  assert (H' := H). destruct H' as (_ & _ & _ & A & Q). split.
  - intros s. assert (X := after_bounds r _ (cap r) s IH). assert (Y := after_bounds r _ 0 s IH). nra.
  - intros s s' L. assert (X := after_rises r _ (cap r) (cap r) s s' H IH (Rle_refl _) L).
    assert (Y := after_rises r _ 0 0 s s' H IH (Rle_refl _) L). nra.
Qed.

(** Lower caps and probabilities give a lower V: what a user with more items gets is covered by the caps of t. *)
Definition milder (r' r : round) : Prop :=
  threshold r' = threshold r /\ drop r' = drop r /\ part r' = part r /\ mu r' = mu r /\ cap r' <= cap r /\ chance r' <= chance r.

Theorem V_rises_with_caps rounds' rounds :
  Forall sane rounds' -> Forall sane rounds -> Forall2 milder rounds' rounds -> forall s, V rounds' s <= V rounds s.
Proof.
  intros S' S M. revert S' S. induction M as [|r' r rest' rest M1 M IH]; intros S' S s; simpl; [lra|].
  inversion S'; inversion S; subst. specialize (IH ltac:(assumption) ltac:(assumption)).
  assert (P := V_proper rest ltac:(assumption)). assert (P' := V_proper rest' ltac:(assumption)).
  destruct M1 as (T & D & C & U & A & Q). destruct (H1) as (_ & _ & _ & A' & Q'). 
  assert (Step : forall w, after r' (V rest') w s <= after r (V rest) w s).
  { intros w. apply mean_rises. intros x. cbv zeta. rewrite C, U. unfold decided. rewrite T, D.
    destruct (Rle_dec _ _); [lra|]. destruct (Rlt_dec _ _); [lra|]. apply IH. }
  assert (X := Step (cap r')). assert (Y := Step 0).
  assert (Z := after_rises r (V rest) (cap r') (cap r) s s ltac:(assumption) P A (Rle_refl _)).
  assert (W := after_rises r (V rest) 0 (cap r) s s ltac:(assumption) P ltac:(destruct H5; tauto || lra) (Rle_refl _)).
  assert (O := after_bounds r' (V rest') (cap r') s P'). nra.
Qed.

(** ** Every way of sharing

    What one novel item meets may follow from the whole past: the chance that it is drawn, its weight if it is, whether
    another novel item was released (then it is not among the first), and how the past goes on, given its noise. *)
Variable past : Type.
Variable stopped : past -> bool.
Variable drawn : round -> past -> R.
Variable weights : round -> past -> (R -> R) -> R.   (* the mean over its weight, if it is drawn *)
Variable next : round -> past -> R -> R -> (past -> R) -> R.   (* the mean over what follows, given weight and noise *)

Hypothesis drawn_at_most : forall r h, stopped h = false -> 0 <= drawn r h <= chance r.
Hypothesis weights_at_most : forall r h f c,
  stopped h = false -> (forall w, 0 <= w <= cap r -> f w <= c) -> weights r h f <= c.
Hypothesis next_at_most : forall r h w x f c, (forall h', f h' <= c) -> next r h w x f <= c.

(** The probability that the item is released before or together with every other novel item. *)
Fixpoint among_the_first (rounds : list round) (h : past) (s : R) : R :=
  match rounds with
  | [] => 0
  | r :: rest =>
      if stopped h then 0 else
      let value w := mean (fun x => let s' := s + part r * (mu r * w + x) in
                                    decided r s' (next r h w x (fun h' => among_the_first rest h' s'))) in
      drawn r h * weights r h value + (1 - drawn r h) * value 0
  end.

(** "The probability that it is among the first to be released is at most V_1(0)." *)
Theorem every_strategy rounds : Forall sane rounds -> forall h s, among_the_first rounds h s <= V rounds s.
Proof.
  induction 1 as [|r rest H T IH]; intros h s; simpl; [lra|].
  assert (P := V_proper rest T). assert (B1 := after_bounds r (V rest) (cap r) s P).
  assert (B0 := after_bounds r (V rest) 0 s P). destruct (H) as (_ & _ & _ & A & Q).
  destruct (stopped h) eqn:St; [nra|].
  assert (D := drawn_at_most r h St).
  set (value := fun w => mean (fun x => decided r (s + part r * (mu r * w + x))
                  (next r h w x (fun h' => among_the_first rest h' (s + part r * (mu r * w + x)))))).
  assert (W : forall w, value w <= after r (V rest) w s).
  { intros w. apply mean_rises. intros x. apply decided_le, next_at_most. intros h'. apply IH. }
  assert (M : weights r h value <= after r (V rest) (cap r) s).
  { apply weights_at_most; [exact St|]. intros w L. eapply Rle_trans; [apply W|].
    apply after_rises; auto; lra. }
  assert (N := W 0). assert (O := after_rises r (V rest) 0 (cap r) s s H P A (Rle_refl _)).
  change (drawn r h * weights r h value + (1 - drawn r h) * value 0 <=
          chance r * after r (V rest) (cap r) s + (1 - chance r) * after r (V rest) 0 s). nra.
Qed.

End Rounds.

(** ** The largest over t

    Levels have a number of items and a bound V. Every t is counted as a level with at least as many items. *)
Definition largest (levels : list (R * R)) : R := fold_right (fun l d => Rmax (fst l * snd l) d) 0 levels.

Lemma largest_covers levels l : In l levels -> fst l * snd l <= largest levels.
Proof.
  induction levels as [|m levels IH]; simpl; intros I; [tauto|]. destruct I as [I | I].
  - subst m. apply Rmax_l.
  - eapply Rle_trans; [now apply IH | apply Rmax_r].
Qed.

(** "All t between two levels get the caps of the upper one and count as its t": d covers them, by the sum over items. *)
Theorem max_over_t levels t (each : nat -> R) items v :
  In (items, v) levels -> INR t <= items -> 0 <= v -> (forall i, each i <= v) ->
  fold_right Rplus 0 (map each (seq 0 t)) <= largest levels.
Proof.
  intros I L N E. apply Rle_trans with (items * v); [|apply (largest_covers _ _ I)].
  apply Rle_trans with (INR t * v); [|nra]. rewrite <- (seq_length t 0) at 2.
  induction (seq 0 t) as [|i l IH]; simpl map; simpl fold_right; [simpl; lra|].
  change (length (i :: l)) with (S (length l)). rewrite S_INR. specialize (E i). lra.
Qed.

Print Assumptions V_proper.
Print Assumptions V_rises_with_caps.
Print Assumptions every_strategy.
Print Assumptions max_over_t.
